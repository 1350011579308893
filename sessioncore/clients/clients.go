package clients

import (
	"errors"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/procfs"
	"sessionfs/sessioncore/storage"
)

// Clients finds live clients that have no session file open: a breadcrumb names the session, and a process at the
// breadcrumb's terminal has the agent directory's databases open (docs/format.md, What a running client has open). It
// is safe for concurrent use.
//
// If no client runs, a query costs one check of each database. Otherwise it also stats each breadcrumb, and it scans
// /proc only if a breadcrumb names the session.
type Clients struct {
	proc   string // /proc
	source Source

	mu     sync.Mutex // guards the fields below
	crumbs breadcrumbs
	scan   clientScan
}

// Source is an agent directory, which can tell whether a process has a file open for writing.
type Source interface {
	storage.Files
	Writers(name string) (storage.WriterState, error)
}

// databaseNames are the databases that every client keeps open while it runs. Each is in write-ahead mode, so that
// its -wal and -shm files are open as well.
var databaseNames = []string{"agent.db", "history.db", "models.db"}

// scanLife is how long the result of a process scan may be reused. clientScan.holds has a further condition.
const scanLife = time.Second

// New returns a Clients for an agent directory: source holds its databases, terminals its breadcrumbs.
func New(source Source, terminals storage.Files) *Clients {
	return &Clients{proc: "/proc", source: source, crumbs: breadcrumbs{storage: terminals}}
}

// On returns the client that has the session file name of the storage sessions open, or nil if there is none. A
// client also counts as being on the sessions of its subagents, whose files lie below its own (familyOf).
func (c *Clients) On(sessions storage.Files, name string) *LiveError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.databases() == storage.WritersNone {
		return nil
	}
	named := c.crumbs.naming(familyOf(sessions, name))
	if len(named) == 0 || c.scan.holds(named) && c.pick(name, named) == nil {
		return nil
	}
	if live := c.scanFor(name, named); live != nil {
		return live
	}
	// A database is in use, but we see no process: the client is in another container or belongs to another user. The
	// database is checked again because the client that was seen before may have ended since.
	if len(c.scan.found) == 0 && c.databases() == storage.WritersPresent {
		return &LiveError{Session: name, Sign: SignTerminal, Terminal: named[0].terminal}
	}
	return nil
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
	return c.scanFor(name, named)
}

// databases returns whether a process has one of the databases open for writing.
func (c *Clients) databases() storage.WriterState {
	used := storage.WritersNone
	for _, name := range databaseNames {
		state, err := c.source.Writers(name)
		switch {
		case storage.IsMissing(err) || errors.Is(err, storage.ErrNotRegular):
		case state == storage.WritersPresent:
			return storage.WritersPresent
		case state == storage.WritersUnknown:
			used = storage.WritersUnknown
		}
	}
	return used
}

// scanFor scans for client processes and returns the one that wrote one of the breadcrumbs, or nil.
func (c *Clients) scanFor(session string, named []breadcrumb) *LiveError {
	c.scan = clientScan{at: time.Now(), found: c.findClients()}
	return c.pick(session, named)
}

// pick returns the process that wrote one of the breadcrumbs, or nil. A process whose terminal is unknown, and a
// breadcrumb of a kind of terminal that we cannot detect, are taken to belong together unless the process has a
// breadcrumb of its own.
func (c *Clients) pick(session string, named []breadcrumb) *LiveError {
	var live *LiveError
	for _, crumb := range named {
		for _, p := range c.scan.found {
			sure := slices.Contains(p.terminals, crumb.terminal)
			if !sure && (p.known && knownTerminal(crumb.terminal) || c.crumbs.any(p.terminals)) {
				continue
			}
			if live == nil || sure {
				live = &LiveError{Session: session, Sign: SignTerminal, Terminal: crumb.terminal, find: func() int { return p.pid }}
			}
			if sure {
				return live
			}
		}
	}
	return live
}

// clientProcess is a process that has a database of the agent directory open for writing.
type clientProcess struct {
	pid       int
	terminals []string // ids that its terminal may have
	known     bool     // terminals has all of them
}

// findClients scans /proc for processes that have one of the databases open for writing. It skips processes that it may
// not inspect.
func (c *Clients) findClients() (found []clientProcess) {
	var files []storage.Token
	for _, db := range databaseNames {
		for _, name := range []string{db, db + "-wal", db + "-shm"} {
			if st, err := c.source.Stat(name); err == nil && st.Kind == storage.KindFile {
				files = append(files, st.Token)
			}
		}
	}
	for _, p := range procfs.Processes(c.proc) {
		if p.PID == os.Getpid() {
			continue
		}
		if writes, _ := p.Writes(files...); !writes {
			continue
		}
		client, err := procfs.Look(func() (c clientProcess, err error) {
			c.terminals, c.known = terminalIDs(p.Dir)
			return c, nil
		})
		if err != nil {
			client = clientProcess{} // at an unknown terminal
		}
		client.pid = p.PID
		found = append(found, client)
	}
	return found
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
