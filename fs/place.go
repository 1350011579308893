package fs

import (
	"cmp"
	"log/slog"
	"path"
	"slices"

	"sessionfs/blobfs"
	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/redact"
	"sessionfs/sessioncore/writer"
)

// place is an opened SOURCE, or a part of one: its sessions, and what reads and writes them. A function for each kind of SOURCE
// fills it in (openDir, openForeign, openDatabase, openArchive, openAll), and opener.show makes the View of it.
type place struct {
	name    string                   // of its directory in sessions/; "" where that has the sessions of one place alone
	shownIn string                   // the directory of the mount that shows it
	top     storage.Files            // has the attributes of the mount's root
	source  *dir.Storage             // the agent directory, nil where there is none
	files   storage.Files            // the sessions in the form of omp
	raw     storage.Files            // the files that shownIn shows, nil where files serves
	facts   storage.Files            // the sessions without texts, for bills; nil where files serves
	blobs   *blobfs.Store            // nil for none: references to blobs stay what they are
	root    string                   // the path that sessions have in common, for messages and parents
	nameOf  func(path string) string // the name of a session's path, where they are several people's
	agent   *agents.Agent            // whose form the sessions have, nil for that of omp
	program func(file string) program.Program
	keep    int                         // how many sessions keep a snapshot, 0 for the usual number
	frozen  error                       // why nothing can be changed, nil if it can
	writer  writer.Options              // those for this kind of SOURCE alone; without a Journal nothing is written
	prompts history.History             // nil where nobody keeps any
	archive *place                      // the archived sessions, nil for none
	parts   []*place                    // of the agents, where there are several
	shared  bool                        // other machines may write to the sessions
	space   func() (nodes.Space, error) // answers statfs, nil where the server does for source
	// names returns the names of the root that a redacted mount has not: what is there cannot be masked, or is about all
	// sessions and about who is working now, which is not what somebody shares (docs/design.md section 8).
	names func() []nodes.Name
	// ready is called when there is a View.
	ready func()

	dirs    []*dir.Storage // of those that are open, those that hold descriptors for the sessions
	closers []func()       // of what is open, the last one first

	store, bill *sessioncore.Store
	view        *nodes.View
}

// opener opens places with what was read for the options of a mount.
type opener struct {
	mountopts.Options
	rules  *redact.Rules // what is masked with Redact
	log    *slog.Logger
	memory *budget.Budget
}

// open opens SOURCE, whose sessions are shown in the directory sessions/name. Callers must close it.
func (o *opener) open(name string) (*place, error) {
	p := &place{name: name, shownIn: path.Join(layout.Sessions, name)}
	if err := o.fill(p); err != nil {
		p.close()
		return nil, err
	}
	o.show(p)
	return p, nil
}

// fill opens SOURCE, whatever it is.
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
	p.source, p.top = source, source
	if p.agent = agents.Of(source.Path()); p.agent != nil {
		return o.openForeign(p)
	}
	return o.openDir(p)
}

// show makes the View of a place, and of its archive. The files of several places are masked already.
func (o *opener) show(p *place) {
	w := p.writer
	if o.Redact && p.parts == nil {
		p.files, w.Journal = redact.New(p.files, o.rules), nil
		if p.raw != nil {
			p.raw = redact.New(p.raw, o.rules)
		}
	}
	p.store = o.newStore(p, p.files, p.keep)
	for _, s := range p.dirs {
		s.OnNoDescriptor(p.store.Close) // kept snapshots hold an open file each
	}
	if p.facts != nil {
		p.bill = o.newStore(p, p.facts, keepArchived)
	}
	list := listing.NewIn(p.store, p.root, p.shownIn)
	if p.parts != nil {
		list = listing.NewOf(p.store, p.agents()...)
	} else if p.nameOf != nil {
		list.SetPeople(p.nameOf)
	}
	p.view = &nodes.View{
		Log: o.log, Listing: list, Sessions: p.store, ReadOnly: o.ReadOnly, Redacted: o.Redact, Memory: o.memory,
		BlobRefs: o.ContextBlobsRef || o.Redact || p.blobs == nil, Frozen: p.frozen, Family: listing.Family{list},
	}
	if p.blobs != nil {
		w.Blobs, p.view.Blobs = p.blobs, p.blobs
	}
	w.Root, w.Scope = p.root, list.Scope
	w.ReadOnly, w.Sync, w.LiveAllow, w.LeafMemory = o.ReadOnly, o.Sync, o.LiveAllow, o.LeafMemory
	p.view.Writer = writer.New(p.store, w)
	p.view.Search = search.New(search.Sessions{
		Files: p.files, Tree: p.shownIn, Agents: p.agents, Memory: o.memory, Limit: search.DefaultLimit,
	})
	if a := p.archive; a != nil {
		if a.view == nil {
			o.show(a)
			a.view.Family = listing.Family{list, a.view.Listing}
		}
		p.view.Archive, p.view.Family = a.view, listing.Family{list, a.view.Listing}
	}
	if p.ready != nil {
		p.ready()
	}
}

// newStore returns a store of a place's sessions, which gives back what is idle when memory is full. keep is how many sessions
// keep a snapshot, 0 for the usual number.
func (o *opener) newStore(p *place, files storage.Files, keep int) *sessioncore.Store {
	store := sessioncore.NewStore(files)
	if keep > 0 {
		store.Keep(keep)
	}
	store.SetProgram(p.program)
	o.memory.OnFull(store.EvictIdle)
	p.closers = append(p.closers, store.Close)
	return store
}

// agents returns the agents whose sessions these are, as agent: in a search names them.
func (p *place) agents() (names []string) {
	for _, part := range p.parts {
		names = append(names, part.name)
	}
	if names == nil {
		names = []string{p.agentOf("")}
	}
	return names
}

// agentOf returns the agent whose session a file is, where there is one agent alone.
func (p *place) agentOf(file string) string {
	switch of := p.program(file); {
	case p.agent != nil:
		return p.agent.Name
	case of == program.Pi || of == program.LikelyPi:
		return "pi"
	}
	return "omp"
}

// billed returns the store of which a bill is made.
func (p *place) billed() *sessioncore.Store { return cmp.Or(p.bill, p.store) }

// listed returns the files that are shown in the directory of the place.
func (p *place) listed() storage.Files { return cmp.Or(p.raw, p.files) }

// sub opens a directory of SOURCE. It need not exist: the client makes it when it first needs it, which can be after the
// mount.
func (p *place) sub(name string) (*dir.Storage, error) {
	s, err := p.opened(p.source.Sub(name))
	if err != nil {
		return nil, err
	}
	return s, checkLink(p.source, name, s)
}

// opened has a directory closed with the place.
func (p *place) opened(s *dir.Storage, err error) (*dir.Storage, error) {
	if err == nil {
		p.dirs, p.closers = append(p.dirs, s), append(p.closers, func() { _ = s.Close() })
	}
	return s, err
}

// close closes everything that the place holds open.
func (p *place) close() {
	for _, c := range slices.Backward(p.closers) {
		c()
	}
}
