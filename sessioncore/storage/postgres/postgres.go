package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// Options configure a Storage.
type Options struct {
	// Memory bounds the kept content; it may be nil.
	Memory *budget.Budget
	// Temporary is the directory for content that is too long for memory, "" for the usual one of temporary
	// files.
	Temporary string
	// Log gets a line when the database is lost, and when it is reached again.
	Log *slog.Logger
	// Empty allows a prefix that no row begins with.
	Empty bool
	// Fresh is how long a look at the table is valid at least, 0 to look each time.
	Fresh time.Duration
}

// Storage implements storage.Storage with the rows of a table. Use Open to create one.
//
// Lock order: look.turn, look.mu, rowContent.fetching, rowContent.mu, Storage.mu, kept.mu. An eviction,
// which has kept.mu, only tries the others.
type Storage struct {
	opts   Options
	pool   *pool
	sql    queries
	prefix string
	people *people      // nil where all rows have the prefix
	table  string       // for locks
	quoted string       // as a part of statements
	device uint64       // the same for the same table
	owner  storage.Stat // user and group of this process

	fifo storage.FIFOMutexes
	look look
	kept *kept

	onLost func(error)
	onBack func()

	broken  atomic.Pointer[error] // why the database cannot be reached; nil if it can
	ctx     context.Context       // ends with Close
	close   context.CancelFunc
	working sync.WaitGroup // goroutines of work

	mu            sync.RWMutex // guards the fields below, nodes, and rows without their content
	root          *catalogueNode
	rows          map[string]*row // by path
	inodes        uint64
	clock         int64            // counts the facts that were stored in rows
	badPathLogged bool             // a row with a path that is no name was logged
	held          map[string]*lock // by name
}

var _ storage.Storage = (*Storage)(nil)

// Open connects to a database and reads the table. The error says which of both is wrong, and why.
// Callers must close the Storage.
func Open(ctx context.Context, src *TableSource, o Options) (*Storage, error) {
	s := newStorage(o)
	s.table = src.Table
	s.quoted = src.table
	s.prefix = src.Prefix
	s.device = xxhash.Sum64String("sessionfs " + src.Shown)
	var err error
	s.pool, err = newPool(ctx, src.pool.Copy())
	if err != nil {
		return nil, unreachable(err)
	}
	err = s.begin(ctx, src)
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// newStorage returns a storage that knows of no table yet.
func newStorage(o Options) *Storage {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Storage{
		opts:   o,
		root:   &catalogueNode{inode: 2},
		rows:   map[string]*row{},
		inodes: 2,
		held:   map[string]*lock{},
		onLost: func(error) {},
		onBack: func() {},
	}
	s.ctx, s.close = context.WithCancel(context.Background())
	s.owner.UID = uint32(os.Geteuid())
	s.owner.GID = uint32(os.Getegid())
	s.root.touch(time.Now().UnixNano())
	s.kept = newKept(o.Memory, o.Temporary)
	return s
}

// begin checks the table and reads it, and finds out which rows are shown.
func (s *Storage) begin(ctx context.Context, src *TableSource) error {
	schema, err := s.checkTable(ctx, src)
	if err != nil {
		return err
	}
	s.sql = makeQueries(src.table, schema+"."+changesTable)
	err = s.findPlace(ctx, src)
	if err != nil {
		return err
	}
	err = s.lookNow(ctx)
	if err != nil {
		return fmt.Errorf("the table %s cannot be read: %w", src.Table, err)
	}
	return s.checkPrefix(ctx, src)
}

// Notify sets the functions that are called when the database is lost, and when it is reached
// again. It must be called before s is used.
func (s *Storage) Notify(lost func(error), back func()) {
	s.onLost = lost
	s.onBack = back
}

// Close ends all connections.
func (s *Storage) Close() {
	s.mu.Lock()
	s.close()
	s.mu.Unlock()
	s.working.Wait()
	s.pool.Close()
	s.kept.close()
}

// List implements storage.Files.
func (s *Storage) List(dir string, only []string, f func(storage.Item) bool) error {
	s.refresh()
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, err := s.lookUp("open", dir)
	isFile := err == nil && n.row != nil
	if isFile {
		err = missing("open", dir)
	}
	switch {
	case only != nil && storage.IsMissing(err):
		return nil // none of them is there
	case err != nil:
		return err
	}
	s.listNode(n, only, f)
	return nil
}

// listNode calls f with the children of a directory, or of them the ones in only unless that is nil, until it
// returns false. An item's State is valid during its call. Callers must hold s.mu.
func (s *Storage) listNode(dir *catalogueNode, only []string, f func(storage.Item) bool) {
	var st storage.Stat
	state := func() (storage.Stat, error) { return st, nil } // one for all items, as there are many
	list := func(name string, child *catalogueNode) (goesOn bool) {
		st = s.statOf(child)
		return f(storage.Item{Name: name, Kind: st.Kind, State: state})
	}
	if only == nil {
		for name, child := range dir.children {
			if !list(name, child) {
				return
			}
		}
		return
	}
	for _, name := range only {
		child := dir.children[name]
		if child != nil && !list(name, child) {
			return
		}
	}
}

// Stat implements storage.Storage.
func (s *Storage) Stat(name string) (storage.Stat, error) {
	s.refresh()
	return s.known(name)
}

// Known returns s for callers that must not wait for the server: its Stat does not look at the
// table.
func (s *Storage) Known() storage.Files { return known{s} }

// known is a Storage that answers by its catalogue alone.
type known struct{ *Storage }

// Stat implements storage.Files.
func (k known) Stat(name string) (storage.Stat, error) { return k.known(name) }

// known is Stat by the catalogue alone.
func (s *Storage) known(name string) (storage.Stat, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, err := s.lookUp("stat", name)
	if err != nil {
		return storage.Stat{}, err
	}
	return s.statOf(n), nil
}

// Sync implements storage.Storage. A write is durable already.
func (s *Storage) Sync(name string) error {
	_, err := s.fileNow("fsync", name)
	return err
}

// fileNow returns the row of a name after a refresh. The row of a locked name cannot have changed.
func (s *Storage) fileNow(op, name string) (*row, error) {
	s.refreshUnlocked(name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.file(op, name)
}

// refreshUnlocked is refresh unless the name is locked.
func (s *Storage) refreshUnlocked(name string) {
	s.mu.RLock()
	_, held := s.held[name]
	s.mu.RUnlock()
	if !held {
		s.refresh()
	}
}
