package clients

import (
	"path"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Clients tells which sessions of an agent directory have a live client on them that holds no descriptor: the
// breadcrumb of its terminal names the session, and a process at that terminal has the agent directory's
// databases open (docs/format.md, What a running client has open). It is safe for concurrent use.
//
// What it costs when no client lives is a look at each database. When some client lives, a look at each breadcrumb
// comes on top; only when one names the session are processes looked at.
type Clients struct {
	proc string // /proc

	mu        sync.Mutex // guards what follows
	databases clientDatabases
	crumbs    breadcrumbs
	scan      clientScan
}

// scanLife is how long a search for processes is believed at most. Within it, only as long as the breadcrumbs
// are what they were: see clientScan.
const scanLife = time.Second

// New returns who knows of the clients of an agent directory: source holds its databases, terminals its
// breadcrumbs.
func New(source, terminals storage.Storage) *Clients {
	return &Clients{proc: "/proc", databases: clientDatabases{storage: source}, crumbs: breadcrumbs{storage: terminals}}
}

// Close lets go of the databases.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.databases.close()
}

// On returns the client that is on the session in a file of a storage, nil for none. It is also on the sessions of its
// subagents, whose files lie below the session's (familyOf).
func (c *Clients) On(sessions storage.Storage, name string) *LiveError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.databases.used() == storage.WritersNone {
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
	c.scan = clientScan{at: time.Now()}
	c.scan.found = findClients(c.proc, c.databases.files())
	if live := c.pick(named, c.scan.found); live != nil {
		return live
	}
	// A database that is in use, by nobody whom we can see: by a client in another container, or of another user. It is
	// looked at again, for the one that was seen before may have ended since.
	if len(c.scan.found) == 0 && c.databases.used() == storage.WritersPresent {
		return &LiveError{Sign: SignTerminal, Terminal: named[0].terminal}
	}
	return nil
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
		if crumb.token.Racy(s.at.UnixNano()) {
			return false
		}
	}
	return true
}

// familyOf returns the file name of the outermost session that a session belongs to: its own, or that of X.jsonl
// for one below X.
func familyOf(files storage.Storage, name string) string {
	family := name
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := files.Stat(dir + sessioncore.FileEnding); err == nil && st.Kind == storage.KindFile {
			family = dir + sessioncore.FileEnding
		}
	}
	return family
}
