package fs

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/blobfs"
	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/costs"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/lost"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/storage/redact"
	"sessionfs/sessioncore/writer"
)

// The directories of SOURCE that are shown. Nothing else is: it holds credentials and settings
// (docs/design.md section 1).
const (
	blobsName     = "blobs"
	terminalsName = "terminal-sessions"
)

// tree is the root directory of a mount and what it reads from.
type tree struct {
	source  *dir.Storage             // nil where SOURCE is a database
	agent   *agents.Agent            // whose form the sessions have, nil for that of omp
	dirs    []*dir.Storage           // source, and what is shown of it
	closers []func()                 // of what is open, the last one first
	place   string                   // where the sessions are, for messages
	pathOf  func(name string) string // instead of place, where they are several people's
	store   *sessioncore.Store
	bill    *sessioncore.Store // the sessions without texts, nil where store serves as well
	files   storage.Files      // the files in sessions/: those of store, but where another agent's are converted
	archive *archive
	view    *nodes.View
	root    *nodes.RootDir
	shared  bool    // other machines may write to the sessions
	parts   []*tree // of the agents, where there are several
	prompts history.History
	// unmasked are the names of the root that a redacted mount has not: what is there cannot be masked, or is about all
	// sessions and about who is working now, which is not what somebody shares (docs/design.md section 8).
	unmasked []nodes.Name
}

// openTree opens SOURCE and makes the root directory of a mount of it.
func openTree(o mountopts.Options, log *slog.Logger) (*tree, error) {
	var prices report.Prices
	if o.Prices != mountopts.NoPrices {
		var err error
		if prices, err = report.OpenPrices(o.Prices); err != nil {
			return nil, fmt.Errorf("%w prices: %w", ErrOption, err)
		}
	}
	var rules *redact.Rules
	if o.Redact { // to parse them takes 3 MB
		var err error
		if rules, err = redact.ReadRules(o.RedactRules); err != nil {
			return nil, fmt.Errorf("%w redact-rules: %w", ErrOption, err)
		}
	}
	t, err := openSource(options{o, prices, rules}, log)
	if err != nil {
		err = fmt.Errorf("cannot open the agent directory: %w", err)
	}
	return t, err
}

// ErrOption means that the file of an option is missing or cannot be used.
var ErrOption = errors.New("-o")

// options are those of a mount, with what was read for them.
type options struct {
	mountopts.Options
	prices report.Prices
	rules  *redact.Rules // what is masked with Redact
}

// openSource is openTree with what was read for the options.
func openSource(o options, log *slog.Logger) (*tree, error) {
	switch {
	case mountopts.IsDatabase(o.Source):
		return openDatabase(o, log)
	case o.Source == mountopts.All:
		return openAll(o, log)
	}
	t, err := openAgent(o, log, newMemory(o), layout.Sessions)
	if err == nil {
		t.setRoot(t.source, nodes.SourceName(layout.Sessions, t.files, t.store), o.prices)
	}
	return t, err
}

// openAgent opens SOURCE, whose sessions are shown in a directory of the mount.
func openAgent(o options, log *slog.Logger, memory *budget.Budget, shownIn string) (t *tree, err error) {
	t = &tree{}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	source, err := t.keep(dir.Open(o.Source))
	if err != nil {
		return t, err
	}
	source.SetSharing(sharing(o))
	t.source, t.prompts = source, history.New(source)
	if t.agent = agents.Of(source.Path()); t.agent != nil {
		return t, t.openForeign(o, log, memory, shownIn)
	}
	t.place = filepath.Join(source.Path(), layout.Sessions)
	flat := piSessionDir(source, o.Source, os.Getenv)
	onDisk, err1 := t.openSessions(layout.Sessions, flat)
	blobs, err2 := t.sub(blobsName)
	terminals, err3 := t.openTerminals(o.State)
	if err := errors.Join(err1, err2, err3); err != nil {
		return t, err
	}
	owner, err := source.Stat("")
	if err != nil {
		return t, err
	}
	onDisk.SetSharing(sharing(o)) // pi's may be elsewhere
	paths := []string{o.Source, o.SourceAs, source.Path()}
	for _, path := range clients.AgentDirs(os.Getenv, paths...) {
		onDisk.AlsoAt(filepath.Join(path, layout.Sessions))
	}
	live := clients.New(source, terminals)
	leases := clients.NewLeases(clients.LeaseDirs(os.Getenv, paths...)...).Beside(onDisk.Paths()...)
	t.openView(o, log, onDisk, onDisk, blobs, onDisk.Path(), shownIn, memory, writer.Options{
		Crumbs:  terminals,
		Clients: live,
		Leases:  leases,
		Flat:    flat != "",
		Scopes:  clients.ScopesOf(owner.UID),
	})
	t.store.SetProgram(program.NewRoot(source, o.Source, source.Path()).Program)
	t.shared = onDisk.Shared()
	if !o.Redact {
		if t.view.Archive, err = t.openArchive(t.view); err != nil {
			return t, err
		}
		t.unmasked = []nodes.Name{
			nodes.ArchiveName(t.archive.onDisk),
			nodes.SourceName(blobsName, blobs, nil),
			nodes.LinksName("continue", layout.Continue{Listing: t.view.Listing, Crumbs: terminals}, "continue"),
			nodes.LinksName("running", &layout.Running{Listing: t.view.Listing, Clients: live, Leases: leases}, ""),
			nodes.SourceName(terminalsName, terminals, nil),
		}
	}
	return t, nil
}

// newMemory returns what bounds the memory of the process.
func newMemory(o options) *budget.Budget {
	memory := budget.New(cmp.Or(o.Memory, budget.Default))
	memory.LimitCollector(sessioncore.TakeReadingPeak)
	return memory
}

// openView makes the view of the sessions, whose paths begin with root and which are shown in a directory of the mount.
// Without blobs (nil) references to them stay what they are. w has the options of a writer for this kind of SOURCE alone.
func (t *tree) openView(o options, log *slog.Logger, sessions storage.Files, journal storage.Journal, blobs storage.Storage, root, shownIn string, memory *budget.Budget, w writer.Options) {
	shown := sessions
	if o.Redact {
		shown, journal = redact.New(sessions, o.rules), nil
	}
	t.store, t.files = sessioncore.NewStore(shown), shown
	t.closers = append(t.closers, t.store.Close)
	memory.OnFull(t.store.EvictIdle)
	for _, s := range t.dirs {
		s.OnNoDescriptor(t.store.Close) // kept snapshots hold an open file each
	}
	list := listing.NewIn(t.store, root, shownIn)
	t.view = &nodes.View{
		Log: log, Listing: list, Sessions: t.store, ReadOnly: o.ReadOnly, Redacted: o.Redact,
		BlobRefs: o.ContextBlobsRef || o.Redact || blobs == nil, Memory: memory,
	}
	if blobs != nil {
		store := blobfs.New(blobs)
		w.Blobs, t.view.Blobs = store, store
	}
	w.Journal, w.Root, w.Scope = journal, root, list.Scope
	w.ReadOnly, w.Sync, w.LiveAllow, w.LeafMemory = o.ReadOnly, o.Sync, o.LiveAllow, o.LeafMemory
	t.view.Writer = writer.New(t.store, w)
	t.view.Search = newSearcher(t.view, shown, shownIn, t.agents)
}

// agents returns the agent whose sessions these are, as agent: in a search names it.
func (t *tree) agents() []string { return []string{t.agentOf("")} }

// agentOf returns the agent whose session a file is, where there is one agent alone.
func (t *tree) agentOf(file string) string {
	switch p := t.store.Program(file); {
	case t.agent != nil:
		return t.agent.Name
	case p == program.Pi || p == program.LikelyPi:
		return "pi"
	}
	return "omp"
}

// setRoot makes the root directory.
func (t *tree) setRoot(source storage.Files, sessions nodes.Name, prices report.Prices) {
	list := t.view.Listing
	t.view.Prices = prices
	byID := layout.ByID{Listing: list}
	if t.view.Archive != nil {
		byID.Archive = t.view.Archive.Listing
	}
	if t.prompts != nil && !t.view.Redacted {
		t.unmasked = append(t.unmasked, nodes.HistoryName(source, t.prompts))
	}
	names := append(t.unmasked,
		nodes.LinksName("by-cwd", layout.Nested{Listing: list, Tree: listing.ByCwd, Dir: "/"}, ""),
		nodes.LinksName("by-date", layout.Nested{Listing: list, Tree: listing.ByDate, Dir: "/"}, ""),
		nodes.ByFileName,
		nodes.LinksName("by-id", byID, "by-id"),
		nodes.IndexName,
		nodes.LastErrorName(source),
		nodes.NewSessionName(t.store.Storage(), source),
		nodes.LinksName("recent", layout.Recent{Listing: list}, ""),
		nodes.SearchName,
		sessions,
		nodes.OverAllName("lost.tsv", lost.New(t.store).Table),
		nodes.OverAllName("usage.jsonl", costs.New(t.billed(), prices).Lines),
	)
	slices.SortFunc(names, func(a, b nodes.Name) int { return strings.Compare(a.Name, b.Name) })
	t.root = nodes.NewRootDir(t.view, source, names...)
}

// openTerminals opens the directory of the breadcrumbs, which is in state if that is not empty.
func (t *tree) openTerminals(state string) (*dir.Storage, error) {
	if state == "" {
		return t.sub(terminalsName)
	}
	parent, err := t.keep(dir.Open(state))
	if err != nil {
		return nil, err
	}
	return t.keep(parent.Sub(terminalsName))
}

// sharing returns what the options say about other machines.
func sharing(o options) dir.Sharing {
	switch {
	case o.Shared:
		return dir.SharingAlways
	case o.NotShared:
		return dir.SharingNever
	}
	return dir.SharingDetected
}

// sub returns a directory of SOURCE. It need not exist: the client makes it when it first needs it, which can be
// after the mount.
func (t *tree) sub(name string) (*dir.Storage, error) {
	s, err := t.keep(t.source.Sub(name))
	if err != nil {
		return nil, err
	}
	return s, checkLink(t.source, name, s)
}

// keep makes a directory that was opened one of the tree's.
func (t *tree) keep(s *dir.Storage, err error) (*dir.Storage, error) {
	if err == nil {
		t.dirs, t.closers = append(t.dirs, s), append(t.closers, func() { _ = s.Close() })
	}
	return s, err
}

// close closes everything that the tree holds open.
func (t *tree) close() {
	for _, c := range slices.Backward(t.closers) {
		c()
	}
}

// serve returns the file system of the tree, which answers the requests of the kernel, or of this process.
func (t *tree) serve() fuse.RawFileSystem {
	return fusefs.NewNodeFS(t.root, &fusefs.Options{
		NullPermissions: true, // a mode of 0 is shown as it is
		RootStableAttr:  &fusefs.StableAttr{Ino: fuse.FUSE_ROOT_ID},
	})
}

// archiveName is where the client puts archived sessions, in SOURCE (docs/format.md, omp after 18.2.3).
const archiveName = "archive/sessions"

// keepArchived is how many archived sessions keep a snapshot: what is kept of them comes on top of that of the others.
const keepArchived = 16

// archive is the archived sessions and where they are.
type archive struct {
	onDisk   *dir.Storage
	unpacked *gzip.Storage
	store    *sessioncore.Store
}

// openArchive returns a view of the archived sessions beside live.
func (t *tree) openArchive(live *nodes.View) (*nodes.View, error) {
	onDisk, err := t.sub(archiveName)
	if err != nil {
		return nil, err
	}
	a := &archive{onDisk: onDisk, unpacked: gzip.New(onDisk, live.Memory, temporaryDir())}
	a.store = sessioncore.NewStore(a.unpacked)
	a.store.Keep(keepArchived)
	a.store.SetProgram(func(string) program.Program { return program.OMP }) // pi archives nothing
	onDisk.OnNoDescriptor(a.store.Close)
	live.Memory.OnFull(a.store.EvictIdle)
	t.archive, t.closers = a, append(t.closers, a.store.Close)
	view := &nodes.View{
		Log: live.Log, Blobs: live.Blobs, BlobRefs: live.BlobRefs, Memory: live.Memory, ReadOnly: live.ReadOnly,
		Writer:   writer.New(a.store, writer.Options{ReadOnly: true}),
		Listing:  listing.NewIn(a.store, onDisk.Path(), layout.Archive),
		Sessions: a.store,
		Live:     live,
	}
	view.Search = newSearcher(view, a.unpacked, layout.Archive, func() []string { return []string{"omp"} })
	return view, nil
}

// temporaryDir is where large archives are unpacked to: /tmp is often in memory.
func temporaryDir() string {
	if d := os.Getenv("TMPDIR"); filepath.IsAbs(d) {
		return d
	}
	return "/var/tmp"
}
