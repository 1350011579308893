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
	// maxFileBytes bounds the size of the files together. That is some 100,000 prompts.
	maxFileBytes = 64 << 20
	// copyStep is the number of bytes that are copied between two checks for cancellation.
	copyStep = 256 << 10
	// walHeaderSize is the size in bytes of the header of a write-ahead log. Two numbers in it
	// change whenever the log is restarted (SQLite's file format, section 4.1).
	walHeaderSize = 32
)

// fileCopies holds the database's files at one moment, by name. Missing files have no entry.
type fileCopies struct {
	content map[string][]byte
	state   State
	settled bool // Rendering.Settled
}

// errChanged means that the files changed while they were copied.
var errChanged = errors.New("the database changed")

// copiedFiles are the open files while they are copied, by name.
type copiedFiles map[string]storage.Object

// copy copies the files into memory of room, or returns errChanged if their states differ.
func (h *PromptDatabase) copy(ctx context.Context, room *budget.Hold) (*fileCopies, error) {
	files := copiedFiles{}
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
	c := &fileCopies{content: map[string][]byte{}}
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
	for name, obj := range files { // is the open file still the named one?
		st, err := obj.Stat()
		if now, missing := h.files.Stat(name); err != nil || missing != nil || !now.SameObject(st.Token) {
			return nil, errChanged
		}
	}
	return c, nil
}

// header returns the header of the log, less if the log is shorter.
func (files copiedFiles) header() ([]byte, error) {
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

// add copies a file, if it exists, and returns its state from before.
func (c *fileCopies) add(ctx context.Context, files copiedFiles, name string, room *budget.Hold) (storage.Stat, error) {
	if files[name] == nil {
		return storage.Stat{}, nil
	}
	st, err := files[name].Stat()
	if err != nil {
		return st, err
	}
	size := st.Size
	for _, other := range c.content {
		size += int64(len(other))
	}
	if size > maxFileBytes {
		const text = "%w: %s and its log have %d MiB, and may have %d"
		return st, fmt.Errorf(text, ErrTooBig, databaseName, size>>20, maxFileBytes>>20)
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
			return st, errChanged // it was truncated
		} else if err != nil {
			return st, err
		}
	}
	c.content[name] = content
	return st, nil
}

// copiesVFS is SQLite's file system. It has only the copies and is read-only, without locks.
type copiesVFS struct{ *fileCopies }

var _ vfs.VFS = copiesVFS{}

// Open implements vfs.VFS.
func (v copiesVFS) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	content, ok := v.content[name]
	kind := flags & (vfs.OPEN_MAIN_DB | vfs.OPEN_MAIN_JOURNAL | vfs.OPEN_WAL)
	if kind == 0 || !ok && kind != vfs.OPEN_WAL { // no temporary files
		return nil, 0, sqlite3.CANTOPEN
	}
	// A missing log is an empty one: SQLite wants to create it for a database in WAL mode.
	return memoryFile{bytes.NewReader(content)}, kind | vfs.OPEN_READONLY, nil
}

// The other methods of vfs.VFS.

func (v copiesVFS) Delete(string, bool) error { return sqlite3.IOERR_DELETE }
func (v copiesVFS) Access(name string, _ vfs.AccessFlag) (bool, error) {
	return v.content[name] != nil, nil
}
func (v copiesVFS) FullPathname(name string) (string, error) { return name, nil }

// memoryFile is a copy of a file for SQLite.
type memoryFile struct{ *bytes.Reader }

var _ vfs.File = memoryFile{}

// The other methods of vfs.File. Locks are granted, since nobody else sees these files.

func (f memoryFile) Size() (int64, error)                            { return f.Reader.Size(), nil }
func (f memoryFile) Close() error                                    { return nil }
func (f memoryFile) WriteAt([]byte, int64) (int, error)              { return 0, sqlite3.READONLY }
func (f memoryFile) Truncate(int64) error                            { return sqlite3.READONLY }
func (f memoryFile) Sync(vfs.SyncFlag) error                         { return nil }
func (f memoryFile) Lock(vfs.LockLevel) error                        { return nil }
func (f memoryFile) Unlock(vfs.LockLevel) error                      { return nil }
func (f memoryFile) CheckReservedLock() (bool, error)                { return false, nil }
func (f memoryFile) SectorSize() int                                 { return 0 }
func (f memoryFile) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
