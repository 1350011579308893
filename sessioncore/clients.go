package sessioncore

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"
)

// Clients tells which sessions of an agent directory have a live client on them that holds no descriptor: the
// breadcrumb of its terminal names the session, and a process at that terminal has the agent directory's
// databases open (docs/format.md). It is safe for concurrent use.
//
// What it costs when no client lives is three looks at a database. When some client lives, a look at each
// breadcrumb comes on top; only when one names the session are processes looked at.
type Clients struct {
	proc string // /proc

	mu        sync.Mutex // guards what follows
	databases []*clientDatabase
	crumbs    breadcrumbs
	scan      clientScan
}

// databaseNames are what every client has open while it lives, each in write-ahead mode with two more files
// beside it that are open then as well.
var databaseNames = []string{"agent.db", "history.db", "models.db"}

// scanLife is how long a search for processes is believed at most. Within it, only as long as the breadcrumbs
// are what they were: see clientScan.
const scanLife = time.Second

// NewClients returns who knows of the clients of an agent directory: source holds its databases, terminals its
// breadcrumbs.
func NewClients(source, terminals Storage) *Clients {
	c := &Clients{proc: "/proc", crumbs: breadcrumbs{storage: terminals}}
	for _, name := range databaseNames {
		c.databases = append(c.databases, &clientDatabase{storage: source, name: name})
	}
	return c
}

// Close lets go of the databases.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.databases {
		d.drop()
	}
}

// On returns the client that is on the session in a file of a storage, nil for none. It is also on the sessions of its
// subagents, whose files lie below the session's (familyOf).
func (c *Clients) On(sessions Storage, name string) *LiveError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used() == WritersNone {
		return nil
	}
	named := c.crumbs.naming(familyOf(sessions, name))
	if len(named) == 0 {
		return nil
	}
	live := c.look(named)
	if live != nil {
		live.Session = name
	}
	return live
}

// look returns the client that one of the breadcrumbs is of, nil for none.
func (c *Clients) look(named []breadcrumb) *LiveError {
	if c.scan.holds(named) && c.pick(named, c.scan.found) == nil {
		return nil
	}
	var files []Token
	for _, d := range c.databases {
		files = append(files, d.files()...)
	}
	c.scan = clientScan{at: time.Now()}
	c.scan.found = findClients(c.proc, files)
	if live := c.pick(named, c.scan.found); live != nil {
		return live
	}
	// A database that is in use, by nobody whom we can see: by a client in another container, or of another user. It is
	// looked at again, for the one that was seen before may have ended since.
	if len(c.scan.found) == 0 && c.used() == WritersPresent {
		return &LiveError{Sign: SignTerminal, Terminal: named[0].terminal}
	}
	return nil
}

// used says whether a process has one of the databases open for writing.
func (c *Clients) used() WriterState {
	used := WritersNone
	for _, d := range c.databases {
		switch d.writers() {
		case WritersPresent:
			return WritersPresent
		case WritersUnknown:
			used = WritersUnknown
		}
	}
	return used
}

// pick returns the process that one of the breadcrumbs is of, nil for none. A breadcrumb of a kind that we cannot
// find terminals for, and a process whose terminal we cannot find out, may belong together, unless the
// process has a breadcrumb of its own.
func (c *Clients) pick(named []breadcrumb, found []clientProcess) *LiveError {
	var live *LiveError
	for _, crumb := range named {
		for _, p := range found {
			sure := p.isAt(crumb.terminal)
			if !sure && (p.known && knownTerminal(crumb.terminal) || c.crumbs.any(p.terminals)) {
				continue
			}
			if live == nil || sure {
				live = &LiveError{Sign: SignTerminal, PID: p.pid, Command: p.command, Terminal: crumb.terminal}
			}
			if sure {
				return live
			}
		}
	}
	return live
}

// clientScan is a search for the processes of clients. A client opens a database before it writes the breadcrumb
// that names a session. So of a breadcrumb that is as it was before the search, the search has seen the client
// if there was one, for as long as the breadcrumb stays as it is.
type clientScan struct {
	at    time.Time // when it began; zero: never
	found []clientProcess
}

// holds reports whether the search tells of the breadcrumbs as they are now.
func (s *clientScan) holds(named []breadcrumb) bool {
	if time.Since(s.at) > scanLife {
		return false
	}
	for _, crumb := range named {
		if racy(crumb.token, s.at.UnixNano()) {
			return false
		}
	}
	return true
}

// familyOf returns the file name of the outermost session that a session belongs to: its own, or that of X.jsonl
// for one below X.
func familyOf(storage Storage, name string) string {
	family := name
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := storage.Stat(dir + sessionEnding); err == nil && st.Kind == KindFile {
			family = dir + sessionEnding
		}
	}
	return family
}

// clientDatabase is a database, which stays open: a look at a lease needs a descriptor, and opening one for
// every write would cost more than all the rest. Nothing is ever read of it.
type clientDatabase struct {
	storage Storage
	name    string
	open    Object // nil: not open
	token   Token  // of open
}

// writers says whether a process has the database open for writing.
func (d *clientDatabase) writers() WriterState {
	st, err := d.storage.Stat(d.name)
	if err != nil || st.Kind != KindFile {
		d.drop()
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return WritersNone
		}
		return WritersUnknown
	}
	if d.open != nil && !st.SameObject(d.token) {
		d.drop()
	}
	if d.open == nil && !d.take() {
		return WritersUnknown
	}
	file, ok := d.open.(Filer)
	if !ok {
		return WritersUnknown
	}
	state, returned := leaseState(int(file.Fd()))
	if !returned {
		d.drop() // and with it the lease
	}
	return state
}

// take opens the database.
func (d *clientDatabase) take() bool {
	obj, err := d.storage.Open(d.name)
	if err != nil {
		return false
	}
	st, err := obj.Stat()
	if err != nil {
		_ = obj.Close()
		return false
	}
	d.open, d.token = obj, st.Token
	return true
}

func (d *clientDatabase) drop() {
	if d.open != nil {
		_ = d.open.Close()
		d.open = nil
	}
}

// files are the files that a process has open which uses the database.
func (d *clientDatabase) files() (files []Token) {
	for _, name := range []string{d.name, d.name + "-wal", d.name + "-shm"} {
		if st, err := d.storage.Stat(name); err == nil && st.Kind == KindFile {
			files = append(files, st.Token)
		}
	}
	return files
}

// breadcrumb is what a client wrote of its terminal.
type breadcrumb struct {
	terminal string // its name
	file     string // the session file that it names; "" for none
	token    Token
	readAt   int64 // nanoseconds since the epoch
}

// isOf reports whether the breadcrumb names a session of a family (Clients.On). It names it by an absolute path,
// which may be another one than ours where a link leads to the agent directory; and the client itself
// renames the directories of sessions sometimes, beside others that are on them.
func (b *breadcrumb) isOf(family string) bool {
	dir := "/" + strings.TrimSuffix(family, sessionEnding)
	return strings.HasSuffix(b.file, dir+sessionEnding) ||
		strings.Contains(family, "/") && strings.Contains(b.file, dir+"/") ||
		len(path.Base(family)) >= uniqueName && path.Base(b.file) == path.Base(family)
}

// uniqueName is the least length of the names that clients give their session files: a time of 24 characters,
// an underscore, an id of 16 or more, and the ending.
const uniqueName = 24 + 1 + 16 + len(sessionEnding)

// breadcrumbs remembers what stands in the breadcrumbs. A breadcrumb is written over in place, so that each is
// looked at each time; the directory is read only when it changed.
type breadcrumbs struct {
	storage Storage
	dir     Token
	readAt  int64 // of dir, nanoseconds since the epoch; 0: never
	list    []breadcrumb
}

// naming returns the breadcrumbs that name a session of a family.
func (b *breadcrumbs) naming(family string) (named []breadcrumb) {
	b.look()
	for i := range b.list {
		if b.list[i].isOf(family) {
			named = append(named, b.list[i])
		}
	}
	return named
}

// any reports whether there is a breadcrumb of one of these terminals.
func (b *breadcrumbs) any(terminals []string) bool {
	for i := range b.list {
		for _, id := range terminals {
			if b.list[i].terminal == id && b.list[i].file != "" {
				return true
			}
		}
	}
	return false
}

// look reads what changed.
func (b *breadcrumbs) look() {
	now := time.Now().UnixNano()
	if st, err := b.storage.Stat(""); err != nil || b.readAt == 0 || st.Token != b.dir || racy(st.Token, b.readAt) {
		b.dir, b.readAt = st.Token, now
		b.relist()
	}
	for i := range b.list {
		b.list[i].look(b.storage, now)
	}
}

// relist takes up the names in the directory.
func (b *breadcrumbs) relist() {
	known := map[string]breadcrumb{}
	for _, crumb := range b.list {
		known[crumb.terminal] = crumb
	}
	items, _ := b.storage.List("") // none: there are no breadcrumbs
	b.list = b.list[:0]
	for _, item := range items {
		if item.Kind == KindFile {
			crumb := known[item.Name]
			crumb.terminal = item.Name
			b.list = append(b.list, crumb)
		}
	}
}

// look reads the breadcrumb, where it is not what it was.
func (b *breadcrumb) look(storage Storage, now int64) {
	st, err := storage.Stat(b.terminal)
	if err != nil {
		*b = breadcrumb{terminal: b.terminal}
		return
	}
	if st.Token == b.token && !racy(st.Token, b.readAt) {
		return
	}
	b.token, b.readAt = st.Token, now
	b.file, _ = ReadBreadcrumb(storage, b.terminal)
}
