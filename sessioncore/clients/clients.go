package clients

import (
	"path"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Clients finds live clients that have no session file open: a breadcrumb names the session, and a process at the
// breadcrumb's terminal has the agent directory's databases open (docs/format.md, What a running client has open). It
// is safe for concurrent use.
//
// If no client runs, a query costs one check of each database. Otherwise it also stats each breadcrumb, and it scans
// /proc only if a breadcrumb names the session.
type Clients struct {
	proc string // /proc

	mu        sync.Mutex // guards the fields below
	databases clientDatabases
	crumbs    breadcrumbs
	scan      clientScan
}

// scanLife is how long the result of a process scan may be reused. clientScan.holds has a further condition.
const scanLife = time.Second

// New returns a Clients for an agent directory: source holds its databases, terminals its breadcrumbs.
func New(source, terminals storage.Files) *Clients {
	return &Clients{proc: "/proc", databases: clientDatabases{storage: source}, crumbs: breadcrumbs{storage: terminals}}
}

// Close closes the databases.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.databases.close()
}

// On returns the client that has the session file name of the storage sessions open, or nil if there is none. A
// client also counts as being on the sessions of its subagents, whose files lie below its own (familyOf).
func (c *Clients) On(sessions storage.Files, name string) *LiveError {
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

// Seen is On by what the breadcrumbs and /proc tell alone. It asks for no lease on the databases, and so finds no client
// whose process cannot be seen.
func (c *Clients) Seen(sessions storage.Files, name string) *LiveError {
	c.mu.Lock()
	defer c.mu.Unlock()
	named := c.crumbs.naming(familyOf(sessions, name))
	if len(named) == 0 {
		return nil
	}
	live := c.scanFor(named)
	if live != nil {
		live.Session = name
	}
	return live
}

// look returns the client that wrote one of the breadcrumbs, or nil if none of them runs.
func (c *Clients) look(named []breadcrumb) *LiveError {
	if c.scan.holds(named) && c.pick(named, c.scan.found) == nil {
		return nil
	}
	if live := c.scanFor(named); live != nil {
		return live
	}
	// A database is in use, but we see no process: the client is in another container or belongs to another user. The
	// database is checked again because the client that was seen before may have ended since.
	if len(c.scan.found) == 0 && c.databases.used() == storage.WritersPresent {
		return &LiveError{Sign: SignTerminal, Terminal: named[0].terminal}
	}
	return nil
}

// scanFor scans for client processes and returns the one that wrote one of the breadcrumbs, or nil.
func (c *Clients) scanFor(named []breadcrumb) *LiveError {
	c.scan = clientScan{at: time.Now()}
	c.scan.found = findClients(c.proc, c.databases.files())
	return c.pick(named, c.scan.found)
}

// pick returns the process that wrote one of the breadcrumbs, or nil. A process whose terminal is unknown, and a
// breadcrumb of a kind of terminal that we cannot detect, are taken to belong together unless the process has a
// breadcrumb of its own.
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

// clientScan is the result of a scan for client processes. A client opens a database before it writes the breadcrumb
// that names a session. So if a breadcrumb has not changed since the scan began, the scan saw its client, if there
// was one.
type clientScan struct {
	at    time.Time // when the scan began; zero if never
	found []clientProcess
}

// holds reports whether the scan is recent and no breadcrumb in named has changed since it began.
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

// familyOf returns the file name of the outermost session that name belongs to: name itself, or X.jsonl if name lies
// below the directory X and X.jsonl exists.
func familyOf(files storage.Files, name string) string {
	family := name
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := files.Stat(dir + sessioncore.FileEnding); err == nil && st.Kind == storage.KindFile {
			family = dir + sessioncore.FileEnding
		}
	}
	return family
}
