package fs

import (
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"

	"sessionfs/blobfs"
	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/forks"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/secrets"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/transfer"
	"sessionfs/sessioncore/writer"
)

// place is an opened SOURCE, or a part of one: its sessions, with their readers and writers. A method of
// opener for each kind of SOURCE fills it in (openDir, openForeign, openDatabase, openArchive, openAll), and
// opener.show makes its View.
type place struct {
	name    string // its directory in sessions/; "" if that has the sessions of one place
	shownIn string // the directory of the mount that shows it
	kind    placeKind
	parts   []*place // of the agents, if there are several
	refused []string // why other agents have no part, with their names
	archive *place   // the archived sessions, nil for none

	// The files to read.
	top    storage.Files               // has the attributes of the mount's root
	source *dir.Storage                // the agent directory, nil if there is none
	files  storage.Files               // the sessions in the form of omp
	raw    storage.Files               // the files in shownIn, nil for files
	facts  storage.Files               // the sessions without texts, for bills; nil for files
	blobs  *blobfs.Store               // nil for none: references to blobs stay references
	root   string                      // the common path of the sessions, for messages and parents
	nameOf func(path string) string    // the name of a session's path, if several people share the place
	space  func() (nodes.Space, error) // answers statfs; nil where it has no numbers

	// The rules for writes.
	frozen error          // the reason against all changes, nil if there is none
	writer writer.Options // only those for this kind of SOURCE; without a Journal it is read-only
	shared bool           // other machines may write to the sessions

	// Of a foreign form alone.
	agent   *agents.Agent     // nil for the form of omp
	forks   *forks.Home       // makes forks; nil for none
	foreign *transfer.Foreign // the sessions for bundles

	// Open directories and other resources.
	dirs    []*dir.Storage // directories with descriptors for the sessions
	closers []func()       // called by close, the last one first

	// Made by opener.show.
	keep        int // maximum number of snapshots that store caches, 0 for the default
	store, bill *sessioncore.Store
	view        *nodes.View
}

// placeKind is the part of a place that differs between the kinds of SOURCE.
type placeKind interface {
	// program returns the program that writes a session file.
	program(file string) sessioncore.Program
	// fileOf returns the path of this machine of the agent's own file of a session.
	fileOf(session string) (string, error)
	// prompts returns a function that opens the list of prompts that users typed, nil if there is no such list.
	prompts() func() history.History
	// names returns the names of the root that a redacted mount does not have: they cannot be
	// masked, or concern all sessions and people at work (docs/design.md section 8).
	names() []nodes.Name
	// shown is called after the View of the place is made.
	shown()
}

// plainKind is the kind of a place of sessions in the form of omp alone, with nothing beside them. Other kinds embed
// it for all that they do not have themselves.
type plainKind struct{ place *place }

// program returns ByOMP: other programs do not write such a place, or their sessions are converted.
func (plainKind) program(string) sessioncore.Program { return sessioncore.ByOMP }

// fileOf returns the path below the common path of the sessions.
func (k plainKind) fileOf(session string) (string, error) {
	return path.Join(k.place.root, session), nil
}

func (plainKind) prompts() func() history.History { return nil }
func (plainKind) names() []nodes.Name             { return nil }
func (plainKind) shown()                          {}

// opener opens places for the options of a mount.
type opener struct {
	mountopts.Options
	rules  *secrets.Rules // for Redact
	log    *slog.Logger
	memory *budget.Budget
}

// open opens SOURCE and makes its View, with its sessions in the directory sessions/name. Callers must close it.
func (o *opener) open(name string) (*place, error) {
	p := &place{name: name, shownIn: path.Join(layout.Sessions, name)}
	err := o.fill(p)
	if err != nil {
		p.close()
		return nil, err
	}
	o.show(p)
	return p, nil
}

// fill opens a SOURCE of any kind into a place, which may have an agent already. After an error the place must be
// closed all the same.
func (o *opener) fill(p *place) error {
	switch {
	case mountopts.IsDatabase(o.Source):
		return o.openDatabase(p)
	case o.Source == mountopts.All:
		return o.openAll(p)
	}
	source, err := p.opened(dir.Open(o.Source))
	if err != nil {
		return err
	}
	source.SetSharing(sharing(o.Options))
	p.source = source
	p.top = source
	p.space = spaceOf(source)
	if p.agent == nil {
		p.agent = agents.Of(source.Path())
	}
	if p.agent != nil {
		return o.openForeign(p)
	}
	return o.openDir(p)
}

// show makes the Views of a place and of its archive. Files of several places are masked already.
func (o *opener) show(p *place) {
	if o.Redact && p.parts == nil {
		p.files = secrets.Mask(p.files, o.rules)
		p.writer.Journal = nil
		if p.raw != nil {
			p.raw = secrets.Mask(p.raw, o.rules)
		}
	}
	p.store = o.newStore(p, p.files, p.keep)
	for _, s := range p.dirs {
		s.OnNoDescriptor(p.store.Close) // cached snapshots hold an open file each
	}
	if p.facts != nil {
		p.bill = o.newStore(p, p.facts, archivedSnapshots)
	}
	list := p.newListing()
	p.view = o.newView(p, list)
	if p.archive != nil {
		o.showArchive(p)
	}
	if p.frozen != nodes.ErrArchived { // those are counted with the other sessions of the client
		list.OnStrangers(p.isStranger, func(names []string) {
			p.view.LeaveOutFiles(p.leftOut(names))
		})
	}
	p.kind.shown()
}

// newView returns the View of the sessions in a listing of the place, without its archive.
func (o *opener) newView(p *place, list *listing.Listing) *nodes.View {
	view := &nodes.View{
		Log:      o.log,
		Listing:  list,
		Sessions: p.store,
		ReadOnly: o.ReadOnly,
		Redacted: o.Redact,
		Memory:   o.memory,
		BlobRefs: o.ContextBlobsRef || o.Redact || p.blobs == nil,
		Frozen:   p.frozen,
		Family:   listing.Listings{list},
		Writer:   o.newWriter(p, list),
	}
	if p.blobs != nil { // else Blobs would be an interface that is not nil
		view.Blobs = p.blobs
	}
	switch {
	case p.forks != nil:
		view.Fork = p.forks.Fork
	case p.frozen == nil:
		view.Fork = view.Writer.Fork
	}
	view.Searcher = sync.OnceValue(func() *search.Searcher {
		return o.newSearcher(p)
	})
	return view
}

// showArchive adds the View of the archive to the View of a place, and makes it unless another place of the same
// archive has one. A session may have parents and children on the other side.
func (o *opener) showArchive(p *place) {
	live := p.view.Listing
	archive := p.archive
	if archive.view == nil {
		o.show(archive)
		archive.view.Family = listing.Listings{live, archive.view.Listing}
	}
	p.view.Archive = archive.view
	p.view.Family = listing.Listings{live, archive.view.Listing}
}

// newSearcher returns a searcher of the files of the place.
func (o *opener) newSearcher(p *place) *search.Searcher {
	return search.New(search.SearchedSessions{
		Files:  p.files,
		Tree:   p.shownIn,
		Agents: p.agents,
		Memory: o.memory,
		Limit:  search.DefaultLimit,
	})
}

// newWriter returns the writer of the sessions in a listing of the place.
func (o *opener) newWriter(p *place, list *listing.Listing) *writer.Writer {
	w := p.writer
	if p.blobs != nil {
		w.Blobs = p.blobs
	}
	w.Root = p.root
	w.Scope = list.Scope
	w.ReadOnly = o.ReadOnly
	w.Sync = o.Sync
	w.LiveAllow = o.LiveAllow
	w.LeafMemory = o.LeafMemory
	return writer.New(p.store, w)
}

// newListing returns a listing of the sessions in the store of the place.
func (p *place) newListing() *listing.Listing {
	list := listing.NewIn(p.store, p.root, p.shownIn)
	switch {
	case p.parts != nil:
		list = listing.NewOf(p.store, p.agents()...)
	case p.nameOf != nil:
		list.SetPeople(p.nameOf)
	}
	list.SetNamed(p.isNamed)
	return list
}

// isStranger reports whether no known agent wrote a file with the name of a session, by its first
// records. A file that cannot be read is no stranger.
func (p *place) isStranger(name string) bool {
	for _, part := range p.parts {
		below, isOfPart := strings.CutPrefix(name, part.name+"/")
		if isOfPart {
			return part.isStranger(below)
		}
	}
	text, whole, err := agents.ReadBeginning(p.listed(), name)
	return err == nil && !agents.IsUnderstood(text, whole)
}

// leftOut says that files which no known agent wrote are left out, "" for none.
func (p *place) leftOut(names []string) string {
	if len(names) == 0 {
		return ""
	}
	first := path.Join(p.shownIn, names[0])
	if len(names) == 1 {
		return "1 file that no known agent wrote is left out: " + first
	}
	return fmt.Sprintf("%d files that no known agent wrote are left out; the first is %s", len(names), first)
}

// newStore returns a store of a place's sessions, which evicts idle snapshots when memory is full, and is closed with
// the place. keep is the maximum number of cached snapshots, 0 for the default.
func (o *opener) newStore(p *place, files storage.Files, keep int) *sessioncore.Store {
	store := sessioncore.NewStore(files)
	if keep > 0 {
		store.Keep(keep)
	}
	store.SetProgram(p.kind.program)
	o.memory.OnFull(store.EvictIdle)
	p.closers = append(p.closers, store.Close)
	return store
}

// agents returns the agents of the sessions, by their names for agent: in a search.
func (p *place) agents() (names []string) {
	for _, part := range p.parts {
		names = append(names, part.name)
	}
	if names == nil {
		names = []string{p.agentOf("")}
	}
	return names
}

// agentOf returns the agent of a session file in a place of one agent.
func (p *place) agentOf(file string) string {
	if p.agent != nil {
		return p.agent.Name
	}
	switch p.kind.program(file) {
	case sessioncore.ByPi, sessioncore.LikelyByPi:
		return "pi"
	}
	return "omp"
}

// isNamed reports whether the name of a session file is the session's id.
func (p *place) isNamed(file string) bool {
	if p.parts == nil {
		return p.agent != nil && p.agent.NamesAreIDs
	}
	agent, below, _ := strings.Cut(file, "/")
	part := p.partOf(agent)
	return part != nil && part.isNamed(below)
}

// partOf returns the part of an agent, nil for none.
func (p *place) partOf(agent string) *place {
	for _, part := range p.parts {
		if part.name == agent {
			return part
		}
	}
	return nil
}

// writable returns the first part that can be written, nil for none.
func (p *place) writable() *place {
	for _, part := range p.parts {
		if part.frozen == nil {
			return part
		}
	}
	return nil
}

// billed returns the store for bills.
func (p *place) billed() *sessioncore.Store {
	if p.bill != nil {
		return p.bill
	}
	return p.store
}

// listed returns the files in the directory of the place.
func (p *place) listed() storage.Files {
	if p.raw != nil {
		return p.raw
	}
	return p.files
}

// sub opens a directory of SOURCE. It need not exist: the client makes it when it first needs it,
// perhaps after the mount. A link must pass checkLink.
func (p *place) sub(name string) (*dir.Storage, error) {
	s, err := p.opened(p.source.Sub(name))
	if err != nil {
		return nil, err
	}
	return s, checkLink(p.source, name, s)
}

// opened adds an opened directory to the list of descriptors for the sessions, and returns it, or the error of opening
// it.
func (p *place) opened(s *dir.Storage, err error) (*dir.Storage, error) {
	if err == nil {
		p.dirs = append(p.dirs, s)
	}
	return s, err
}

// close closes all that the place has opened, the last first.
func (p *place) close() {
	for _, c := range slices.Backward(p.closers) {
		c()
	}
}
