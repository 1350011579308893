package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// maxCopied is the maximum size in bytes of the files together. That is some 100,000 prompts.
	maxCopied = 64 << 20
	// copyStep is how much is read before it is asked whether there is still time.
	copyStep = 256 << 10
	// walHeaderSize is the size of the header of a write-ahead log in bytes. It contains two numbers that change whenever
	// the log is restarted (SQLite's file format, section 4.1).
	walHeaderSize = 32
)

// copied is the content of the database's files at one moment, by their names; those that do not exist are not in it.
type copied struct {
	content map[string][]byte
	state   State
	settled bool // Rendering.Settled
}

// errChanged means that the files changed while they were copied.
var errChanged = errors.New("the database changed")

// opened is the files while they are copied, by their names.
type opened map[string]storage.Object

// copy copies the files into memory, which room holds. The error is errChanged if they belong to different states.
func (h *Database) copy(ctx context.Context, room *budget.Hold) (*copied, error) {
	files := opened{}
	defer func() {
		for _, obj := range files {
			_ = obj.Close()
		}
	}()
	for _, name := range []string{databaseName, walName, journalName} {
		obj, err := h.files.Open(name)
		if err == nil {
			files[name] = obj
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storage.ErrNotRegular) {
			return nil, err
		}
	}
	if files[databaseName] == nil {
		return nil, errChanged // it existed a moment ago
	}
	header, err := files.header()
	if err != nil {
		return nil, err
	}
	at := time.Now()
	c := &copied{content: map[string][]byte{}}
	for _, name := range []string{databaseName, journalName, walName} { // the log comes last; see the package comment
		st, err := c.add(ctx, files, name, room)
		if err != nil {
			return nil, err
		}
		if name == databaseName {
			c.state.database = st
		} else if name == walName {
			c.state.wal = st.Token
		}
	}
	c.settled = c.state.Stat().Token.Settling(at) == 0
	if now, err := files.header(); err != nil || !bytes.Equal(now, header) {
		return nil, errChanged
	}
	if len(header) < walHeaderSize { // there is no log
		if wait := c.state.database.Settling(at); wait > 0 {
			time.Sleep(wait)
			return nil, errChanged
		}
		if st, err := files[databaseName].Stat(); err != nil || st.Token != c.state.database.Token {
			return nil, errChanged
		}
	}
	for name, obj := range files { // is it still what the name stands for?
		st, err := obj.Stat()
		if now, missing := h.files.Stat(name); err != nil || missing != nil || !now.SameObject(st.Token) {
			return nil, errChanged
		}
	}
	return c, nil
}

// header returns the header of the log, less if the log is shorter.
func (files opened) header() ([]byte, error) {
	header := make([]byte, walHeaderSize)
	if files[walName] == nil {
		return nil, nil
	}
	n, err := files[walName].ReadAt(header, 0)
	if err == io.EOF {
		err = nil
	}
	return header[:n], err
}

// add copies a file, if it exists, and returns the state that it had before.
func (c *copied) add(ctx context.Context, files opened, name string, room *budget.Hold) (st storage.Stat, err error) {
	if files[name] == nil {
		return st, nil
	}
	if st, err = files[name].Stat(); err != nil {
		return st, err
	}
	size := st.Size
	for _, other := range c.content {
		size += int64(len(other))
	}
	if size > maxCopied {
		return st, fmt.Errorf("%w: %s and its log have %d MiB, and may have %d", ErrTooBig, databaseName, size>>20, maxCopied>>20)
	}
	if err := room.Resize(size); err != nil {
		return st, err
	}
	content := make([]byte, st.Size)
	for at := int64(0); at < st.Size; at += copyStep {
		if err := ctx.Err(); err != nil {
			return st, err
		}
		err := storage.ReadFull(files[name], content[at:min(at+copyStep, st.Size)], at)
		if errors.Is(err, storage.ErrStale) {
			return st, errChanged // it was cut
		} else if err != nil {
			return st, err
		}
	}
	c.content[name] = content
	return st, nil
}

// copiedVFS is the file system that SQLite sees: only the copied files. Nothing in it can be written, created, locked
// or shared.
type copiedVFS struct{ *copied }

var _ vfs.VFS = copiedVFS{}

// Open implements vfs.VFS.
func (v copiedVFS) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	content, ok := v.content[name]
	kind := flags & (vfs.OPEN_MAIN_DB | vfs.OPEN_MAIN_JOURNAL | vfs.OPEN_WAL)
	if kind == 0 || !ok && kind != vfs.OPEN_WAL { // no temporary files
		return nil, 0, sqlite3.CANTOPEN
	}
	// A missing log is an empty one: SQLite wants to create it for a database in WAL mode.
	return copiedFile{bytes.NewReader(content)}, kind | vfs.OPEN_READONLY, nil
}

// Delete implements vfs.VFS.
func (v copiedVFS) Delete(string, bool) error { return sqlite3.IOERR_DELETE }

// Access implements vfs.VFS.
func (v copiedVFS) Access(name string, _ vfs.AccessFlag) (bool, error) {
	return v.content[name] != nil, nil
}

// FullPathname implements vfs.VFS.
func (v copiedVFS) FullPathname(name string) (string, error) { return name, nil }

// copiedFile is a copied file as SQLite sees it.
type copiedFile struct{ *bytes.Reader }

var _ vfs.File = copiedFile{}

// Size implements vfs.File.
func (f copiedFile) Size() (int64, error) { return f.Reader.Size(), nil }

// The other methods of vfs.File. Locks are granted, since nobody else sees these files.

func (f copiedFile) Close() error                                    { return nil }
func (f copiedFile) WriteAt([]byte, int64) (int, error)              { return 0, sqlite3.READONLY }
func (f copiedFile) Truncate(int64) error                            { return sqlite3.READONLY }
func (f copiedFile) Sync(vfs.SyncFlag) error                         { return nil }
func (f copiedFile) Lock(vfs.LockLevel) error                        { return nil }
func (f copiedFile) Unlock(vfs.LockLevel) error                      { return nil }
func (f copiedFile) CheckReservedLock() (bool, error)                { return false, nil }
func (f copiedFile) SectorSize() int                                 { return 0 }
func (f copiedFile) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
