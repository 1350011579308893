package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/ncruces/go-sqlite3"

	"sessionfs/sessioncore/storage"
)

const (
	walEnding     = "-wal"
	journalEnding = "-journal"
	// headerSize is the size in bytes of the header of a write-ahead log.
	headerSize = 32
	// maxTries bounds the transactions for one read.
	maxTries = 20
	// firstPause is the time behind the first try. It doubles up to lastPause.
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// bounds are the limits of a connection to a database in place. The log's index takes 8 bytes a frame.
var bounds = Limits{Memory: 256 << 20, Value: 64 << 20}

// ErrUnreadable means that a database cannot be read: it is damaged, its program was killed within a
// transaction, or it changes all the time.
var ErrUnreadable = errors.New("the database cannot be read")

// errChanged means that the database changed within a transaction.
var errChanged = errors.New("the database changed")

// Database is a database in a directory. It is safe for concurrent use.
type Database struct {
	Files storage.Files
	Name  string
}

// State returns a token that changes with the database. The error wraps fs.ErrNotExist if there is none.
func (d *Database) State() (storage.Token, error) {
	st, err := d.Files.Stat(d.Name)
	if err != nil {
		return storage.Token{}, err
	}
	if st.Kind != storage.KindFile {
		return storage.Token{}, storage.ErrNotRegular
	}
	token := st.Token
	log, err := d.Files.Stat(d.Name + walEnding)
	if err == nil {
		token = token.With(log.Token)
	}
	return token, nil
}

// Read calls read with a connection in a transaction on one state of the database, once more if that
// was not one state. read must drop the results of an earlier call. The error wraps ErrUnreadable, ErrNoMemory,
// an error of the storage, or one of ctx.
func (d *Database) Read(ctx context.Context, read func(*sqlite3.Conn) error) error {
	pause := firstPause
	for range maxTries {
		err := d.try(ctx, read)
		if !errors.Is(err, errChanged) {
			return err
		}
		if !storage.Sleep(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, lastPause)
	}
	return fmt.Errorf("%w: %s changes all the time", ErrUnreadable, d.Name)
}

// try is Read with one transaction. The error wraps errChanged if the state changed.
func (d *Database) try(ctx context.Context, read func(*sqlite3.Conn) error) error {
	files := openFiles{}
	defer files.close()
	err := files.open(d)
	if err != nil {
		return err
	}
	before, err := files.state(d.Name)
	if err != nil {
		return err
	}
	wait := before.database.Settling(time.Now())
	if wait > 0 { // a further write may have the same time
		if !storage.Sleep(ctx, wait) {
			return ctx.Err()
		}
		return errChanged
	}
	err = With(ctx, fileSystem{files}, d.Name, bounds, func(conn *sqlite3.Conn) error {
		err := conn.Exec("BEGIN")
		if err != nil {
			return err
		}
		return read(conn)
	})
	after, failed := files.state(d.Name)
	switch {
	case failed != nil:
		return failed
	case !before.equals(after) || !files.areNamed(d.Files):
		return errChanged
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil || errors.Is(err, ErrNoMemory):
		return err
	}
	return fmt.Errorf("%w: %s: %v", ErrUnreadable, d.Name, err) // an errno of the library could be mistaken for one of ours
}

// openFiles are the open files of a database, by name.
type openFiles map[string]storage.Object

// open opens the files of a database, of which only the first one must exist. A journal with content is
// of a transaction that its program did not end, and only a writer can undo that.
func (f openFiles) open(d *Database) error {
	for _, name := range []string{d.Name, d.Name + walEnding} {
		obj, err := d.Files.Open(name)
		switch {
		case err == nil:
			f[name] = obj
		case name == d.Name || !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	journal, err := d.Files.Stat(d.Name + journalEnding)
	if err == nil && journal.Size > 0 {
		return fmt.Errorf("%w: %s has a transaction that was not ended; start its program once", ErrUnreadable, d.Name)
	}
	return nil
}

func (f openFiles) close() {
	for _, obj := range f {
		_ = obj.Close()
	}
}

// fileState is the state of a database's files that a transaction must find again.
type fileState struct {
	database storage.Token
	header   []byte // of the log
}

func (s fileState) equals(other fileState) bool {
	return s.database == other.database && bytes.Equal(s.header, other.header)
}

// state returns the state of the open files.
func (f openFiles) state(name string) (s fileState, err error) {
	st, err := f[name].Stat()
	if err != nil {
		return s, err
	}
	s.database = st.Token
	log := f[name+walEnding]
	if log == nil {
		return s, nil
	}
	header := make([]byte, headerSize)
	n, err := log.ReadAt(header, 0)
	if err == io.EOF {
		err = nil
	}
	s.header = header[:n]
	return s, err
}

// areNamed reports whether the open files are still those with their names.
func (f openFiles) areNamed(files storage.Files) bool {
	for name, obj := range f {
		opened, err := obj.Stat()
		named, failed := files.Stat(name)
		if err != nil || failed != nil || !named.SameObject(opened.Token) {
			return false
		}
	}
	return true
}
