package history

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// walHeaderSize is the size of the header of a write-ahead log in bytes. It contains two numbers that change whenever
// the log is restarted (SQLite's file format, section 4.1).
const walHeaderSize = 32

// pinned is the database at one moment: its open files at the sizes that they had.
type pinned struct {
	files    Files
	at       time.Time // when the files were opened
	state    State     // the state at that time
	database *pinnedFile
	wal      *pinnedFile // nil if none
	journal  *pinnedFile // nil if none; otherwise a rollback transaction is in progress or was interrupted
	shm      *pinnedFile // nil if none or unusable: no writer, or one that does not use it as expected
	header   []byte      // of the log
	index    walIndex    // contents of shm
}

// pinnedFile is an open file with a fixed size.
type pinnedFile struct {
	ctx  context.Context
	name string
	obj  storage.Object
	stat storage.Stat
	held []byte // the content, if it was copied
}

// ReadAt implements io.ReaderAt up to the pinned size, until ctx is done.
func (f *pinnedFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	left := f.stat.Size - off
	if left <= 0 {
		return 0, io.EOF
	}
	if f.held != nil {
		return bytes.NewReader(f.held).ReadAt(p, off)
	}
	if int64(len(p)) <= left {
		return f.obj.ReadAt(p, off)
	}
	n, err := f.obj.ReadAt(p[:left], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// errChanged means that files were replaced while they were opened.
var errChanged = errors.New("the database changed")

// pin opens the files. It returns errChanged if they were being replaced.
func (h *History) pin(ctx context.Context) (*pinned, error) {
	p := &pinned{files: h.files}
	if err := p.open(ctx); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pinned) open(ctx context.Context) (err error) {
	for name, file := range map[string]**pinnedFile{
		databaseName: &p.database, walName: &p.wal, journalName: &p.journal, shmName: &p.shm,
	} {
		obj, err := p.files.Open(name)
		if err == nil {
			*file = &pinnedFile{ctx: ctx, name: name, obj: obj}
		} else if !isAbsent(err) {
			return err
		}
	}
	if p.database == nil {
		return errChanged // it existed a moment ago
	}
	if p.shm != nil {
		var ok bool
		if p.index, ok = readIndex(p.shm.obj); !ok {
			_ = p.shm.obj.Close()
			p.shm = nil
		}
	}
	// After reading the index, so that all frames it knows are in the log.
	p.at = time.Now()
	for _, f := range p.all() {
		if f.stat, err = f.obj.Stat(); err != nil {
			return err
		}
	}
	p.state.database = p.database.stat
	if p.wal != nil {
		p.state.wal = p.wal.stat.Token
		if p.header, err = readHeader(p.wal.obj); err != nil {
			return err
		}
	}
	if p.replaced() {
		return errChanged
	}
	return nil
}

// isAbsent reports whether err means that there is no regular file with the name.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrNotRegular)
}

// readHeader returns the header of a log, or less if the log is shorter.
func readHeader(wal io.ReaderAt) ([]byte, error) {
	header := make([]byte, walHeaderSize)
	n, err := wal.ReadAt(header, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return header[:n], nil
}

// all returns the files that exist.
func (p *pinned) all() []*pinnedFile {
	var all []*pinnedFile
	for _, f := range []*pinnedFile{p.database, p.wal, p.journal, p.shm} {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

// replaced reports whether one of the names no longer refers to the open file.
func (p *pinned) replaced() bool {
	for _, f := range p.all() {
		if st, err := p.files.Stat(f.name); err != nil || !st.SameObject(f.stat.Token) {
			return true
		}
	}
	return false
}

// wait returns for how long a change of the database file might not show in its times. It returns 0 if there is
// history.db-shm, in which writers announce what they do.
func (p *pinned) wait() time.Duration {
	if p.shm != nil {
		return 0
	}
	return p.database.stat.Token.Settling(p.at)
}

// changed reports whether what was read may be a mixture of two states: the log was restarted or truncated, or frames
// beyond the pinned part of the log may have been copied into the database file. It does not matter if the log grew
// or older frames were copied, since pages that are in the log are read from the log.
func (p *pinned) changed() bool {
	if p.shm != nil {
		now, ok := readIndex(p.shm.obj)
		if !ok || now.salts != p.index.salts || now.copied > p.index.frames {
			return true
		}
	} else if st, err := p.database.obj.Stat(); err != nil || st.Token != p.database.stat.Token {
		return true
	}
	if p.wal != nil {
		if header, err := readHeader(p.wal.obj); err != nil || !bytes.Equal(header, p.header) {
			return true
		}
	}
	return p.replaced()
}

// hold copies the database and its log into memory if they are small enough and there is room.
func (p *pinned) hold(room *budget.Hold) (held bool, err error) {
	files := []*pinnedFile{p.database}
	if p.wal != nil {
		files = append(files, p.wal)
	}
	var size int64
	for _, f := range files {
		size += f.stat.Size
	}
	if size > maxHeld || room.Resize(size) != nil {
		return false, nil
	}
	for _, f := range files {
		content := make([]byte, f.stat.Size)
		if n, err := f.ReadAt(content, 0); int64(n) < f.stat.Size {
			return false, err
		}
		f.held = content
	}
	return true, nil
}

func (p *pinned) close() {
	for _, f := range p.all() {
		_ = f.obj.Close()
	}
}
