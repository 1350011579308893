package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
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
	// maxIdle bounds the connections that wait for the next transaction, of as many readers at once.
	maxIdle = 4
	// maxTime bounds a read with all its tries. The list of 10,000 sessions takes a tenth of a second.
	maxTime = time.Minute
)

// usual are the limits of a connection to a database without its own. The log's index takes 8 bytes a frame.
var usual = Limits{Memory: 256 << 20, Value: 64 << 20}

// ErrUnreadable means that a database cannot be read: it is damaged, its program was killed within a
// transaction, or it changes all the time.
var ErrUnreadable = errors.New("the database cannot be read")

// errChanged means that the database changed within a transaction.
var errChanged = errors.New("the database changed")

// Database is a database in a directory. It is safe for concurrent use.
type Database struct {
	Files storage.Files
	Name  string
	// Limits bound each connection. Zero: 256 MiB, and values of 64 MiB.
	Limits Limits

	mu   sync.Mutex // guards idle
	idle []*reader  // of the last transactions, the latest last
}

// reader is a connection with the open files of a state of a database. It must not be used in another
// state, as its index of the log is the one of this state.
type reader struct {
	*connection
	rows  *Conn
	files openFiles
	state fileState
	at    int64 // when it was in this state, in ns
}

// close closes the connection and the files. It must not be used further.
func (r *reader) close() {
	var ignored error
	func() {
		defer recoverTo(&ignored) // a damaged connection may panic again
		r.rows.closePrepared()
	}()
	r.connection.close()
	r.files.close()
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
func (d *Database) Read(ctx context.Context, read func(*Conn) error) error {
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	pause := firstPause
	for range maxTries {
		err := d.try(limited, read)
		if ctx.Err() == nil && limited.Err() != nil {
			return fmt.Errorf("%w: reading %s takes more than %s", ErrUnreadable, d.Name, maxTime)
		}
		if !errors.Is(err, errChanged) {
			return err
		}
		if !storage.Sleep(limited, pause) {
			continue // the next try tells why
		}
		pause = min(2*pause, lastPause)
	}
	return fmt.Errorf("%w: %s changes all the time", ErrUnreadable, d.Name)
}

// try is Read with one transaction. The error wraps errChanged if the state changed.
func (d *Database) try(ctx context.Context, read func(*Conn) error) error {
	r, err := d.reader(ctx)
	if err != nil {
		return err
	}
	err = r.use(ctx, func(conn *sqlite3.Conn) error {
		err := conn.Exec("BEGIN")
		if err == nil {
			err = read(r.rows)
		}
		return errors.Join(err, conn.Exec("ROLLBACK"))
	})
	after, failed := r.files.state(d.Name)
	isSame := failed == nil && r.state.continues(after) && r.files.areNamed(d.Files)
	if err == nil && isSame {
		d.keep(r)
		return nil
	}
	r.close()
	switch {
	case failed != nil:
		return failed
	case !isSame:
		return errChanged // err may come of that
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrNoMemory):
		return err
	}
	return fmt.Errorf("%w: %s: %v", ErrUnreadable, d.Name, err) // an errno of the library could be mistaken for one of ours
}

// reader returns an idle reader if the database is still in the reader's state, else a new one. Callers must keep or close it.
func (d *Database) reader(ctx context.Context) (*reader, error) {
	for r := d.takeIdle(); r != nil; r = d.takeIdle() {
		now, err := r.files.state(d.Name)
		isSame := r.state == now && !r.state.log.Racy(r.at) // frames may be written over, in the same tick of its time
		if err == nil && isSame && r.files.areNamed(d.Files) && !d.hasNewFile(r.files) {
			return r, nil
		}
		r.close()
	}
	return d.newReader(ctx)
}

// Close closes the files and connections that are kept for later transactions.
func (d *Database) Close() {
	for {
		r := d.takeIdle()
		if r == nil {
			return
		}
		r.close()
	}
}

// takeIdle returns the idle reader of the last transaction, or nil.
func (d *Database) takeIdle() *reader {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.idle) == 0 {
		return nil
	}
	last := len(d.idle) - 1
	r := d.idle[last]
	d.idle = d.idle[:last]
	return r
}

// newReader opens the database in its present state.
func (d *Database) newReader(ctx context.Context) (*reader, error) {
	files := openFiles{}
	at := time.Now().UnixNano()
	state, err := files.open(ctx, d)
	if err != nil {
		files.close()
		return nil, err
	}
	bounds := d.Limits
	if bounds == (Limits{}) {
		bounds = usual
	}
	c, err := open(fileSystem{files}, d.Name, bounds)
	if err != nil {
		files.close()
		return nil, fmt.Errorf("%w: %s: %v", ErrUnreadable, d.Name, err)
	}
	rows := &Conn{Conn: c.conn, version: Version{state: state, at: at}, prepared: map[string]*sqlite3.Stmt{}}
	return &reader{
		connection: c,
		rows:       rows,
		files:      files,
		state:      state,
		at:         at,
	}, nil
}

// keep keeps a reader for a later transaction, unless enough are kept.
func (d *Database) keep(r *reader) {
	d.mu.Lock()
	isKept := len(d.idle) < maxIdle
	if isKept {
		d.idle = append(d.idle, r)
	}
	d.mu.Unlock()
	if !isKept {
		r.close()
	}
}

// openFiles are the open files of a database, by name.
type openFiles map[string]storage.Object

// open opens the files of a database, of which only the first one must exist, and returns their state. A
// journal with content is of a transaction that its program did not end, and only a writer can undo that.
func (f openFiles) open(ctx context.Context, d *Database) (state fileState, err error) {
	for _, name := range []string{d.Name, d.Name + walEnding} {
		obj, err := d.Files.Open(name)
		switch {
		case err == nil:
			f[name] = obj
		case name == d.Name || !errors.Is(err, fs.ErrNotExist):
			return state, err
		}
	}
	journal, err := d.Files.Stat(d.Name + journalEnding)
	if err == nil && journal.Size > 0 {
		return state, fmt.Errorf("%w: %s has a transaction that was not ended; start its program once", ErrUnreadable, d.Name)
	}
	state, err = f.state(d.Name)
	if err != nil {
		return state, err
	}
	wait := state.database.Settling(time.Now())
	switch {
	case wait <= 0:
		return state, nil
	case !storage.Sleep(ctx, wait):
		return state, ctx.Err()
	}
	return state, errChanged // a further write may have had the same time
}

// hasNewFile reports whether the database has a file now that was not opened.
func (d *Database) hasNewFile(files openFiles) bool {
	for _, ending := range []string{walEnding, journalEnding} {
		if files[d.Name+ending] != nil {
			continue
		}
		st, err := d.Files.Stat(d.Name + ending)
		if err == nil && st.Size > 0 {
			return true
		}
	}
	return false
}

func (f openFiles) close() {
	for _, obj := range f {
		_ = obj.Close()
	}
}

// fileState is the state of a database's files.
type fileState struct {
	database storage.Token
	log      storage.Token
	header   string // of the log
}

// continues reports whether what was read in a state is right although the state is now another one: frames
// may have been appended to the log.
func (s fileState) continues(now fileState) bool {
	return s.database == now.database && s.header == now.header
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
	st, err = log.Stat()
	if err != nil {
		return s, err
	}
	s.log = st.Token
	header := make([]byte, headerSize)
	n, err := log.ReadAt(header, 0)
	if err == io.EOF {
		err = nil
	}
	s.header = string(header[:n])
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
