package clients

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
)

// Clients finds live clients that have no session file open: a breadcrumb names the session, and a
// process at the breadcrumb's terminal has the agent directory's databases open (docs/format.md).
// It is safe for concurrent use.
//
// If no client runs, a query costs one check of each database. Otherwise it also stats each
// breadcrumb, and scans /proc only if a breadcrumb names the session.
type Clients struct {
	proc   string // /proc
	source OpenFileSource

	mu     sync.Mutex // guards the fields below
	crumbs breadcrumbs
	scan   clientScan
}

// OpenFileSource is an agent directory that can report whether a process has a file open for writing.
type OpenFileSource interface {
	storage.Files
	Writers(name string) (storage.WriterState, error)
}

// databaseNames are the databases that each running client keeps open, in write-ahead mode, with
// their -wal and -shm files.
var databaseNames = []string{"agent.db", "history.db", "models.db"}

// scanLife is how long a process scan may be reused; see clientScan.isCurrent.
const scanLife = time.Second

// New returns the Clients of an agent directory: source holds databases, terminals breadcrumbs.
func New(source OpenFileSource, terminals storage.Files) *Clients {
	return &Clients{proc: "/proc", source: source, crumbs: breadcrumbs{storage: terminals}}
}

// On returns the client that has the session file open, or nil. A client also counts for the
// sessions of its subagents, in files below its own (sessioncore.OutermostOf).
func (c *Clients) On(sessions storage.Files, name string) *LiveError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.databases() == storage.WritersNone {
		return nil
	}
	crumbs := c.crumbs.naming(sessioncore.OutermostOf(sessions, name))
	if len(crumbs) == 0 {
		return nil
	}
	if c.scan.isCurrent(crumbs) && c.clientOf(name, crumbs) == nil {
		return nil
	}
	live := c.scanFor(name, crumbs)
	if live != nil {
		return live
	}
	// A database is in use, but we see no process: the client is in another container or belongs to
	// another user. The database is checked again because the client may have ended since.
	if len(c.scan.processes) == 0 && c.databases() == storage.WritersPresent {
		return &LiveError{
			Session:  name,
			Sign:     SignTerminal,
			Terminal: crumbs[0].terminal,
		}
	}
	return nil
}

// OnVisible is On by breadcrumbs and /proc alone. It takes no file lease on the databases, and so
// finds no client with a process that we cannot see.
func (c *Clients) OnVisible(sessions storage.Files, name string) *LiveError {
	c.mu.Lock()
	defer c.mu.Unlock()
	crumbs := c.crumbs.naming(sessioncore.OutermostOf(sessions, name))
	if len(crumbs) == 0 {
		return nil
	}
	return c.scanFor(name, crumbs)
}

// Named returns the paths of the session files in the breadcrumbs of live clients, with at most one
// scan. Like OnVisible it finds no client with a process that we cannot see.
func (c *Clients) Named() (files []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crumbs.readChanged()
	crumbs := slices.DeleteFunc(slices.Clone(c.crumbs.list), func(b breadcrumb) bool {
		return b.session.Value == ""
	})
	if len(crumbs) > 0 && !c.scan.isCurrent(crumbs) {
		c.scan = clientScan{at: time.Now(), processes: c.findClients()}
	}
	for _, crumb := range crumbs {
		if c.clientOf(crumb.session.Value, []breadcrumb{crumb}) != nil {
			files = append(files, crumb.session.Value)
		}
	}
	return files
}

// databases reports whether a process has one of the databases open for writing. Databases that are not there
// do not count; it is unknown if that cannot be told of one.
func (c *Clients) databases() storage.WriterState {
	result := storage.WritersNone
	for _, name := range databaseNames {
		state, err := c.source.Writers(name)
		switch {
		case storage.IsMissing(err) || errors.Is(err, storage.ErrNotRegular): // no client has it open
		case state == storage.WritersPresent:
			return storage.WritersPresent
		case state == storage.WritersUnknown:
			result = storage.WritersUnknown
		}
	}
	return result
}

// scanFor scans for client processes, keeps the scan, and returns the process of one of the breadcrumbs, or
// nil. Callers must hold c.mu.
func (c *Clients) scanFor(session string, crumbs []breadcrumb) *LiveError {
	c.scan = clientScan{at: time.Now(), processes: c.findClients()}
	return c.clientOf(session, crumbs)
}

// clientOf returns the process that wrote one of the breadcrumbs, or nil. A process at an unknown
// terminal matches any breadcrumb, and a breadcrumb of a terminal that we cannot detect any
// process, unless the process has a breadcrumb of its own.
func (c *Clients) clientOf(session string, crumbs []breadcrumb) *LiveError {
	var live *LiveError
	for _, crumb := range crumbs {
		for _, p := range c.scan.processes {
			isCertain := slices.Contains(p.terminals, crumb.terminal)
			found := &LiveError{
				Session:  session,
				Sign:     SignTerminal,
				Terminal: crumb.terminal,
				find:     func() int { return p.pid },
			}
			switch {
			case isCertain:
				return found
			case live == nil && c.mayBeAt(p, crumb.terminal):
				live = found
			}
		}
	}
	return live
}

// mayBeAt reports whether a process may be at the terminal of a breadcrumb, although that is none of
// its known ones.
func (c *Clients) mayBeAt(p clientProcess, terminal string) bool {
	if p.known && knownTerminal(terminal) {
		return false
	}
	return !c.crumbs.hasAny(p.terminals)
}

// clientProcess is a process that has a database of the agent directory open for writing.
type clientProcess struct {
	pid       int
	terminals []string // ids that its terminal may have
	known     bool     // terminals has all of them
}

// findClients scans /proc for processes that have one of the databases open for writing, except
// those that we may not inspect.
func (c *Clients) findClients() (found []clientProcess) {
	var files []storage.Token
	for _, db := range databaseNames {
		for _, name := range []string{db, db + "-wal", db + "-shm"} {
			st, err := c.source.Stat(name)
			if err == nil && st.Kind == storage.KindFile {
				files = append(files, st.Token)
			}
		}
	}
	for _, p := range proc.Processes(c.proc) {
		if p.PID == os.Getpid() {
			continue
		}
		writes, _ := p.Writes(files...)
		if !writes {
			continue
		}
		findTerminals := func() (client clientProcess, err error) {
			client.terminals, client.known = terminalIDs(p.Dir)
			return client, nil
		}
		client, err := proc.Look(findTerminals)
		if err != nil {
			client = clientProcess{} // at an unknown terminal
		}
		client.pid = p.PID
		found = append(found, client)
	}
	return found
}

// clientScan is the result of a scan for client processes. A client opens a database before it
// writes a breadcrumb, so the scan found the client of each breadcrumb that has not changed since.
type clientScan struct {
	at        time.Time // of the start; zero before the first scan
	processes []clientProcess
}

// isCurrent reports whether the scan is recent and no breadcrumb has changed since it began.
func (s *clientScan) isCurrent(crumbs []breadcrumb) bool {
	hasChanged := func(b breadcrumb) bool {
		return b.session.Token.Racy(s.at.UnixNano())
	}
	return time.Since(s.at) <= scanLife && !slices.ContainsFunc(crumbs, hasChanged)
}

// Newer clients hold a lease on the session that they write to, from their first write until they
// exit: a lock of package proc (docs/format.md, omp after 18.2.3), so there are no stale
// leases. A client in a container with its own network is not detected.

// Leases finds clients that hold the lease of a session. It is safe for concurrent use.
//
// A query costs a socket and a connect(2) for each directory of leases. It sends nothing; the
// kernel answers.
type Leases struct{ dirs, roots []string }

// NewLeases returns a Leases for directories of leases. They need not exist: on Linux a lease is
// not a file.
func NewLeases(dirs ...string) *Leases { return &Leases{dirs: dirs} }

// Beside adds leases beside the session files, as 18.4.9 to 18.4.12 had them. The roots are the
// paths under which clients may know the storage of the sessions. It must be called before l is
// used.
func (l *Leases) Beside(roots ...string) *Leases {
	l.roots = roots
	return l
}

// AgentDirs returns the absolute paths of agent directories: the given ones, except "", and those
// that a client would use with our environment.
func AgentDirs(getenv func(string) string, extra ...string) (dirs []string) {
	dirs = slices.Clone(extra)
	dirs = append(dirs, getenv("PI_CODING_AGENT_DIR"))
	dirs = append(dirs, inDir(configRoot(getenv), agentName))
	dirs = append(dirs, inDir(getenv("XDG_DATA_HOME"), xdgName))
	return distinctPaths(dirs)
}

// inDir returns the path of name in a directory, "" if there is no directory.
func inDir(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// distinctPaths returns absolute paths without duplicates and without "".
func distinctPaths(dirs []string) (paths []string) {
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if dir != "" && err == nil && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// agentName is the agent directory in the client's configuration, xdgName the client's directory in
// XDG's directories.
const agentName, xdgName = "agent", "omp"

// configRoot returns the client's configuration directory, "" if there is no home.
func configRoot(getenv func(string) string) string {
	dir := getenv("PI_CONFIG_DIR")
	if dir == "" {
		dir = ".omp"
	}
	return inDir(getenv("HOME"), dir)
}

// LeaseDirs returns the directories of leases that clients of an agent directory may use, as
// absolute paths without duplicates: those beside the directory's paths in sources, and those that
// a client derives from its environment, which is assumed to be ours.
func LeaseDirs(getenv func(string) string, sources ...string) (dirs []string) {
	for _, source := range sources {
		if filepath.Base(source) == agentName {
			dirs = append(dirs, filepath.Dir(source))
		}
	}
	dirs = append(dirs, configRoot(getenv), inDir(getenv("XDG_STATE_HOME"), xdgName))
	for i, dir := range dirs {
		dirs[i] = inDir(dir, "run/session-owners")
	}
	return distinctPaths(dirs)
}

// On returns the client that holds the lease called name of the session file, or nil.
func (l *Leases) On(file, name string) *LiveError {
	path := l.first(file, name, proc.IsLocked)
	if path == "" {
		return nil
	}
	find := sync.OnceValue(func() int {
		return proc.LockHolder(path)
	})
	return &LiveError{Session: file, Sign: SignLease, find: find}
}

// Held returns a function that reports whether a client holds the lease of a session file, by one
// list of all locks. It returns nil if there are no such locks.
func (l *Leases) Held() func(file, name string) bool {
	locks := proc.Locks()
	if len(locks) == 0 {
		return nil
	}
	isHeld := func(path string) bool {
		socket := proc.LockSocket(path)
		return locks[socket] != 0
	}
	return func(file, name string) bool {
		path := l.first(file, name, isHeld)
		return path != ""
	}
}

// first returns the first possible path of a session's lease that matches, "" if there is none.
func (l *Leases) first(file, name string, matches func(path string) bool) string {
	for _, dir := range l.dirs {
		path := filepath.Join(dir, name+".lock")
		if matches(path) {
			return path
		}
	}
	dir := storage.Dir(file)
	base := filepath.Base(file)
	for _, root := range l.roots {
		path := filepath.Join(root, dir, "."+base+".owner.lock")
		if matches(path) {
			return path
		}
	}
	return ""
}

// Sign says how a live client was detected (docs/design.md section 4).
type Sign uint8

const (
	// SignDescriptor means that a process has the session file open for writing.
	SignDescriptor Sign = iota + 1
	// SignTerminal means that the breadcrumb of a client's terminal names the session.
	SignTerminal
	// SignLease means that a client holds the session's lease.
	SignLease
)

// String returns the sign's name in the file owner.
func (s Sign) String() string { return [...]string{"none", "descriptor", "breadcrumb", "lease"}[s] }

// LiveError reports that a live client has a session open. It wraps ErrBusy.
type LiveError struct {
	Session  string // file name of the session
	Sign     Sign
	Terminal string // file name of the breadcrumb; only with SignTerminal

	find func() (pid int) // finds the process; nil if it is unknown
}

// Writing returns the error for another process that has a session file open for writing. It does not check
// that there is one: its Process searches for it.
func Writing(files storage.Files, name string) *LiveError {
	findWriter := func() int {
		st, err := files.Stat(name)
		if err != nil {
			return 0
		}
		return proc.Writer(st.Token, os.Getpid())
	}
	return &LiveError{
		Session: name,
		Sign:    SignDescriptor,
		find:    sync.OnceValue(findWriter),
	}
}

// Process returns the client's process and its name, 0 and "" if unknown. It may take milliseconds.
func (e *LiveError) Process() (pid int, command string) {
	if e.find != nil {
		pid = e.find()
	}
	if pid != 0 {
		command = proc.Of(pid).Command()
	}
	return pid, command
}

// Error names the client and tells users how to go on. The first call may take as long as Process.
func (e *LiveError) Error() string {
	const hint = "end it there first, or write to a fork (-o live=allow turns this check off)"
	return fmt.Sprintf("%v %s: %s %s: %s", sessioncore.ErrBusy, e.Session, e.processText(), e.signText(), hint)
}

// processText names the process of the client.
func (e *LiveError) processText() string {
	pid, command := e.Process()
	switch {
	case pid == 0:
		return "a process that cannot be seen from here"
	case command == "":
		return fmt.Sprintf("process %d", pid)
	default:
		return fmt.Sprintf("process %d (%q)", pid, command)
	}
}

// signText says how the client was detected.
func (e *LiveError) signText() string {
	switch e.Sign {
	case SignTerminal:
		return fmt.Sprintf("has it open in the terminal %q", e.Terminal)
	case SignLease:
		return "holds its lease"
	}
	return "has its file open for writing"
}

// Unwrap returns ErrBusy.
func (e *LiveError) Unwrap() error { return sessioncore.ErrBusy }
