package clients

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/filelock"
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
	named := c.crumbs.of(familyOf(sessions, name))
	if len(named) == 0 || c.scan.holds(named) && c.clientOf(name, named) == nil {
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
	named := c.crumbs.of(familyOf(sessions, name))
	if len(named) == 0 {
		return nil
	}
	return c.scanFor(name, named)
}

// Named returns the paths of the session files that the breadcrumbs of live clients name, by one look at all of them. Like
// Seen it finds no client whose process cannot be seen.
func (c *Clients) Named() (files []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crumbs.readChanged()
	crumbs := slices.DeleteFunc(slices.Clone(c.crumbs.list), func(b breadcrumb) bool { return b.file == "" })
	if len(crumbs) > 0 && !c.scan.holds(crumbs) {
		c.scan = clientScan{at: time.Now(), found: c.findClients()}
	}
	for _, crumb := range crumbs {
		if c.clientOf(crumb.file, []breadcrumb{crumb}) != nil {
			files = append(files, crumb.file)
		}
	}
	return files
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
	return c.clientOf(session, named)
}

// clientOf returns the process that wrote one of the breadcrumbs, or nil. A process whose terminal is unknown, and a
// breadcrumb of a kind of terminal that we cannot detect, are taken to belong together unless the process has a
// breadcrumb of its own.
func (c *Clients) clientOf(session string, named []breadcrumb) *LiveError {
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

// Newer clients hold a lease on the session that they write to, from their first write until they exit: a lock of
// package filelock (docs/format.md, omp after 18.2.3), so there are no stale leases. A client in a container with its
// own network is not seen.

// Leases finds clients that hold the lease of a session. It is safe for concurrent use.
//
// A query costs a socket and a connect(2) for each directory in which the lease may be. It sends nothing; the kernel answers.
type Leases struct{ dirs, roots []string }

// NewLeases returns a Leases for the given directories of leases. They need not exist: on Linux a lease is not a
// file.
func NewLeases(dirs ...string) *Leases { return &Leases{dirs: dirs} }

// Beside makes l look beside the session files too, where 18.4.9 to 18.4.12 had their leases. The roots are the paths
// under which clients may know the storage of the sessions. It is called before l is used.
func (l *Leases) Beside(roots ...string) *Leases {
	l.roots = roots
	return l
}

// AgentDirs returns the absolute paths of agent directories: those given that are not empty, and those that a client
// would use with our environment.
func AgentDirs(getenv func(string) string, given ...string) (dirs []string) {
	add := func(dir string) {
		if path, err := filepath.Abs(dir); dir != "" && err == nil && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	for _, dir := range given {
		add(dir)
	}
	add(getenv("PI_CODING_AGENT_DIR"))
	if root := configRoot(getenv); root != "" {
		add(filepath.Join(root, agentName))
	}
	if data := getenv("XDG_DATA_HOME"); data != "" {
		add(filepath.Join(data, xdgName))
	}
	return dirs
}

// agentName is the agent directory in the client's configuration, xdgName the client's directory in those of XDG.
const agentName, xdgName = "agent", "omp"

// configRoot returns the client's configuration directory, "" if there is no home.
func configRoot(getenv func(string) string) string {
	home := getenv("HOME")
	if home == "" {
		return ""
	}
	return filepath.Join(home, cmp.Or(getenv("PI_CONFIG_DIR"), ".omp"))
}

// LeaseDirs returns the directories of leases that clients of an agent directory may use, as absolute paths without
// duplicates: the one beside each of the directory's paths in sources, and those that a client derives from its
// environment, which is assumed to be like ours.
func LeaseDirs(getenv func(string) string, sources ...string) (dirs []string) {
	add := func(dir string) {
		path, err := filepath.Abs(filepath.Join(dir, "run", "session-owners"))
		if err == nil && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	for _, source := range sources {
		if filepath.Base(source) == agentName {
			add(filepath.Dir(source))
		}
	}
	if root := configRoot(getenv); root != "" {
		add(root)
	}
	if state := getenv("XDG_STATE_HOME"); state != "" {
		add(filepath.Join(state, xdgName))
	}
	return dirs
}

// On returns the client that holds the lease of the session file, or nil if there is none. name is that of the lease.
func (l *Leases) On(file, name string) *LiveError {
	path := l.first(file, name, filelock.Held)
	if path == "" {
		return nil
	}
	find := sync.OnceValue(func() int { return filelock.Holder(path) })
	return &LiveError{Session: file, Sign: SignLease, find: find}
}

// Held looks at all locks of clients at once. What it returns reports whether one of them is the lease of a session file; it
// is nil if there are no such locks.
func (l *Leases) Held() func(file, name string) bool {
	locks := filelock.All()
	if len(locks) == 0 {
		return nil
	}
	return func(file, name string) bool {
		return l.first(file, name, func(path string) bool { return locks[filelock.Socket(path)] != 0 }) != ""
	}
}

// first returns the first of the paths that the lease of a session may have for which is returns true, "" if there is none.
func (l *Leases) first(file, name string, is func(path string) bool) string {
	for _, dir := range l.dirs {
		if path := filepath.Join(dir, name+".lock"); is(path) {
			return path
		}
	}
	dir, base := storage.Dir(file), filepath.Base(file)
	for _, root := range l.roots {
		if path := filepath.Join(root, dir, "."+base+".owner.lock"); is(path) {
			return path
		}
	}
	return ""
}

// Sign says how a live client was detected (docs/design.md section 4).
type Sign uint8

const (
	// SignDescriptor: a process has the session file open for writing.
	SignDescriptor Sign = iota + 1
	// SignTerminal: the breadcrumb of a client's terminal names the session.
	SignTerminal
	// SignLease: a client holds the session's lease.
	SignLease
)

// String returns the sign's name in the file owner.
func (s Sign) String() string {
	switch s {
	case SignDescriptor:
		return "descriptor"
	case SignTerminal:
		return "breadcrumb"
	case SignLease:
		return "lease"
	}
	return "none"
}

// LiveError reports that a live client has a session open, and what is known of the client. It wraps ErrBusy.
type LiveError struct {
	Session  string // file name of the session
	Sign     Sign
	Terminal string // file name of the breadcrumb; only with SignTerminal

	find func() (pid int) // finds the process; nil if it is unknown
}

// Writing is the error for a process other than this one that has a session file open for writing.
func Writing(files storage.Files, name string) *LiveError {
	return &LiveError{Session: name, Sign: SignDescriptor, find: sync.OnceValue(func() int {
		st, err := files.Stat(name)
		if err != nil {
			return 0
		}
		_, pid := procfs.Find("/proc", st, os.Getpid())
		return pid
	})}
}

// Process returns the client's process and its name, 0 and "" if unknown. The first call may take milliseconds.
func (e *LiveError) Process() (pid int, command string) {
	if e.find != nil {
		pid = e.find()
	}
	if pid != 0 {
		command = procfs.Of(pid).Command()
	}
	return pid, command
}

// Error names the client and says what the user can do. The first call may take as long as Process.
func (e *LiveError) Error() string {
	const waysOut = "end it there first, or write to a fork (-o live=allow turns this check off)"
	return fmt.Sprintf("%v %s: %s %s: %s", sessioncore.ErrBusy, e.Session, e.who(), e.does(), waysOut)
}

func (e *LiveError) who() string {
	switch pid, command := e.Process(); {
	case pid == 0:
		return "a process that cannot be seen from here"
	case command == "":
		return fmt.Sprintf("process %d", pid)
	default:
		return fmt.Sprintf("process %d (%q)", pid, command)
	}
}

func (e *LiveError) does() string {
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
