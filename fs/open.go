package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sessionfs/blobfs"
	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	_ "sessionfs/sessioncore/agents/all" // registers the agents
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/forks"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/history/promptdb"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/transfer"
	"sessionfs/sessioncore/writer"
)

// The visible directories of SOURCE. All else is hidden, as it holds credentials and settings
// (docs/design.md section 1).
const (
	blobsName     = "blobs"
	terminalsName = "terminal-sessions"
	archiveName   = "archive/sessions" // of the client (docs/format.md, omp after 18.2.3)
)

// archivedSnapshots is the maximum number of cached snapshots of archived sessions.
const archivedSnapshots = 16

// openDir opens the agent directory of omp or pi.
func (o *opener) openDir(p *place) error {
	source := p.source
	flat := piSessionDir(source, o.Source, os.Getenv) // the directory of all sessions of a pi, "" for none
	onDisk, sessionsErr := p.openSessions(layout.Sessions, flat)
	blobs, blobsErr := p.sub(blobsName)
	terminals, terminalsErr := p.openTerminals(o.State)
	err := errors.Join(sessionsErr, blobsErr, terminalsErr)
	if err != nil {
		return err
	}
	owner, err := source.Stat("")
	if err != nil {
		return err
	}
	onDisk.SetSharing(sharing(o.Options)) // pi's sessions may be on another file system
	paths := []string{o.Source, o.SourceAs, source.Path()}
	for _, path := range clients.AgentDirs(os.Getenv, paths...) {
		onDisk.AlsoAt(filepath.Join(path, layout.Sessions))
	}
	live := clients.New(source, terminals)
	leases := clients.NewLeases(clients.LeaseDirs(os.Getenv, paths...)...).Beside(onDisk.Paths()...)
	p.files = onDisk
	p.root = onDisk.Path()
	p.blobs = &blobfs.Store{Storage: blobs}
	p.shared = onDisk.Shared()
	p.kind = &ompKind{
		plainKind: plainKind{p},
		programs:  sessioncore.NewProgramRoot(source, o.Source, source.Path()),
		blobs:     blobs,
		terminals: terminals,
		live:      live,
		leases:    leases,
	}
	p.writer = writer.Options{
		Journal: onDisk,
		Crumbs:  terminals,
		Clients: live,
		Leases:  leases,
		Flat:    flat != "",
		Scopes:  func() clients.Scopes { return clients.ScopesOf(owner.UID) },
	}
	if o.Redact { // a masked mount does not show the archive
		return nil
	}
	p.archive, err = o.openArchive(p)
	return err
}

// ompKind is the kind of the agent directory of omp or pi.
type ompKind struct {
	plainKind
	programs         *sessioncore.ProgramRoot
	blobs, terminals *dir.Storage
	live             *clients.Clients
	leases           *clients.Leases
}

// program tells omp from pi, by the directory and by the file.
func (k *ompKind) program(file string) sessioncore.Program { return k.programs.Program(file) }

// prompts returns the opener of the list that the client keeps in a database.
func (k *ompKind) prompts() func() history.History {
	return func() history.History {
		return promptdb.New(k.place.source)
	}
}

// names returns the names of the archive, the blobs, the breadcrumbs, and the sessions that they and live clients
// tell.
func (k *ompKind) names() []nodes.Name {
	list := k.place.view.Listing
	continued := layout.Continue{Listing: list, Crumbs: k.terminals}
	running := &layout.Running{Listing: list, Clients: k.live, Leases: k.leases}
	return []nodes.Name{
		nodes.ArchiveName(k.place.archive.raw),
		nodes.SourceName(blobsName, k.blobs, nil),
		nodes.UnlessEmpty("continue", continued, "continue"),
		nodes.UnlessEmpty("running", running, ""),
		nodes.SourceName(terminalsName, k.terminals, nil),
	}
}

// openArchive opens the archived sessions of omp beside the live ones, which close it.
func (o *opener) openArchive(live *place) (*place, error) {
	p := &place{
		source:  live.source,
		shownIn: layout.Archive,
		blobs:   live.blobs,
		keep:    archivedSnapshots,
		frozen:  nodes.ErrArchived,
	}
	p.kind = plainKind{p} // pi archives nothing
	live.closers = append(live.closers, p.close)
	onDisk, err := p.sub(archiveName)
	if err != nil {
		return nil, err
	}
	p.files = gzip.New(onDisk, o.memory, temporaryDir())
	p.raw = onDisk
	p.root = onDisk.Path()
	return p, nil
}

// openTerminals opens the directory of the breadcrumbs, which is in state unless that is empty.
func (p *place) openTerminals(state string) (*dir.Storage, error) {
	if state == "" {
		return p.sub(terminalsName)
	}
	parent, err := p.opened(dir.Open(state))
	if err != nil {
		return nil, err
	}
	return p.opened(parent.Sub(terminalsName))
}

// sharing returns the sharing with other machines that the options select.
func sharing(o mountopts.Options) dir.Sharing {
	switch {
	case o.Shared:
		return dir.SharingAlways
	case o.NotShared:
		return dir.SharingNever
	}
	return dir.SharingDetected
}

// openForeign opens the directory of another agent. Its sessions are read-only, but may have forks.
func (o *opener) openForeign(p *place) error {
	kept, err := p.keptFiles()
	if err != nil {
		return err
	}
	below := func(name string) (storage.Files, string, error) {
		sub, err := p.sub(name)
		if err != nil {
			return nil, "", err
		}
		return kept.over(sub, name), sub.Path(), nil
	}
	opened, err := p.agent.Open(agents.Source{
		Files:     kept.over(p.source, ""),
		Path:      p.source.Path(),
		Memory:    o.memory,
		Temporary: temporaryDir(),
		Sub:       below,
	})
	if err != nil {
		return err
	}
	raw := agents.Shown{Files: opened.Files, Format: opened.Format}
	err = readComposed(raw)
	if err != nil {
		return err
	}
	converted := agents.NewFiles(raw, opened.Format, o.memory, temporaryDir())
	p.files = converted
	p.raw = raw
	p.root = opened.Path
	p.frozen = nodes.ErrForeign
	p.kind = &foreignKind{plainKind: plainKind{p}, opened: opened}
	if !o.Redact {
		p.facts = converted.Facts()
	}
	p.foreign = &transfer.Foreign{
		Agent:     p.agent,
		Files:     raw,
		Format:    opened.Format,
		Rules:     o.rules,
		Temporary: temporaryDir(),
	}
	forker, canFork := opened.Format.(agents.Forker)
	if canFork {
		o.allowForks(p, forker)
		if kept.isAlone {
			p.forks.Closed = sessioncore.ErrReadOnly
		}
	}
	return nil
}

// foreignKind is the kind of the directory of another agent. Its sessions are converted to the form of omp.
type foreignKind struct {
	plainKind
	opened agents.Store
}

// fileOf returns the path that the agent has for the session, which may be in another file than the one of its name.
func (k *foreignKind) fileOf(session string) (string, error) {
	namer, isNamer := k.opened.Files.(agents.FileNamer)
	if !isNamer {
		return k.plainKind.fileOf(session)
	}
	file, err := namer.FileOf(session)
	return filepath.Join(k.opened.Root, file), err
}

// prompts returns the opener of the agent's own list, nil if it keeps none.
func (k *foreignKind) prompts() func() history.History {
	open := k.place.agent.Prompts
	if open == nil {
		return nil
	}
	return func() history.History {
		return open(k.place.source)
	}
}

// readComposed reads the list of sessions in a database, so that an unreadable one is refused now. The list is
// kept. Other agents' files are not read.
func readComposed(raw agents.Shown) error {
	_, isComposed := raw.Files.(agents.Composed)
	if !isComposed {
		return nil
	}
	_, err := raw.Stat("")
	if storage.IsMissing(err) {
		return nil
	}
	return err
}

// allowForks lets sessions of another agent be forked: it sets p.forks, and p.frozen, which refuses other changes.
// p.raw has their files.
func (o *opener) allowForks(p *place, format agents.Forker) {
	p.frozen = nodes.ErrForkable
	p.forks = &forks.Home{
		Agent:     p.agent,
		Format:    format,
		Files:     p.raw,
		Journal:   p.forkJournal(),
		Memory:    o.memory,
		Temporary: temporaryDir(),
		Now:       time.Now,
	}
	if o.Redact || o.ReadOnly {
		p.forks.Closed = sessioncore.ErrReadOnly
	}
}

// forkJournal returns a function that returns the writer of a directory of the agent, by its name. It opens each once,
// and may be called by several goroutines.
func (p *place) forkJournal() func(dir string) (storage.Journal, error) {
	var mu sync.Mutex // guards open
	open := map[string]*dir.Storage{}
	return func(name string) (storage.Journal, error) {
		mu.Lock()
		defer mu.Unlock()
		s := open[name]
		if s != nil {
			return s, nil
		}
		s, err := p.sub(name)
		if err != nil {
			return nil, err
		}
		open[name] = s
		return s, nil
	}
}

// KeptDir returns the directory that sessionfs keep puts sessions in. The error is that this user
// has no home.
func KeptDir() (string, error) {
	data, err := userDir("XDG_DATA_HOME", ".local/share")
	return filepath.Join(data, "kept"), err
}

// openAll opens several agents. Each is a place of its own, as in a mount of it alone, so that each
// write follows that agent's rules and locks. The ways to find a session only read all places.
func (o *opener) openAll(p *place) error {
	var failed error
	for _, a := range o.Agents {
		agent := *o
		agent.Options = o.For(a)
		part, err := agent.open(a.Name)
		if err != nil {
			why := fmt.Errorf("%s: %w", a.Source, err)
			p.refused = append(p.refused, a.Name+" is left out: "+why.Error())
			if failed == nil {
				failed = why
			}
			continue
		}
		p.closers = append(p.closers, part.close)
		p.parts = append(p.parts, part)
		p.shared = p.shared || part.shared
	}
	if len(p.parts) == 0 {
		if failed != nil {
			return failed
		}
		return fmt.Errorf("%w: no agent has sessions here", ErrSource)
	}
	p.unite(o.LeftOut)
	return nil
}

// relate lets the sessions of each part have parents and children in the others: a conversation may have
// been handed over.
func (p *place) relate() {
	for _, part := range p.parts {
		family := part.view.Family
		for _, other := range p.parts {
			if other != part {
				family = append(slices.Clip(family), other.view.Listing)
			}
		}
		part.view.Family = family
	}
}

// unite makes a place of its parts. Of the first part that can be written, else of the first one, it has all that is
// shown of one agent alone. leftOut says which other agents could not be found, and why.
func (p *place) unite(leftOut []string) {
	var files, bills []storage.Part
	for _, part := range p.parts {
		files = append(files, storage.Part{Name: part.name, Files: part.files})
		bills = append(bills, storage.Part{Name: part.name, Files: part.billed().Storage()})
	}
	p.files = storage.Union(files...)
	p.facts = storage.Union(bills...)
	p.keep = archivedSnapshots
	first := p.writable()
	if first == nil {
		first = p.parts[0]
	}
	p.kind = &unionKind{
		plainKind: plainKind{p},
		first:     first,
		leftOut:   leftOut,
	}
	p.frozen = first.frozen
	p.archive = first.archive
	p.source = first.source
	p.top = first.source
	p.space = first.space
}

// unionKind is the kind of a place of several agents.
type unionKind struct {
	plainKind
	first   *place // the part with the names of the root
	leftOut []string
}

// program returns the program of the part that has the file, ByUnknown if none has it.
func (k *unionKind) program(file string) sessioncore.Program {
	agent, below, _ := strings.Cut(file, "/")
	part := k.place.partOf(agent)
	if part == nil {
		return sessioncore.ByUnknown
	}
	return part.kind.program(below)
}

// prompts returns the opener of the lists of all parts that have one.
func (k *unionKind) prompts() func() history.History {
	return func() history.History {
		var all history.Several
		for _, part := range k.place.parts {
			open := part.kind.prompts()
			if open != nil {
				all = append(all, history.AgentHistory{Agent: part.name, History: open()})
			}
		}
		return all
	}
}

// names returns the names of the first part.
func (k *unionKind) names() []nodes.Name { return k.first.kind.names() }

// shown relates the sessions of the parts, and adds these to the View.
func (k *unionKind) shown() {
	p := k.place
	p.relate()
	for _, part := range p.parts {
		p.view.Agents = append(p.view.Agents, nodes.ShownAgent{
			Name:  part.name,
			View:  part.view,
			Files: part.listed(),
		})
	}
	for _, reason := range slices.Concat(k.leftOut, p.refused) {
		p.view.LeaveOut(reason)
	}
}

// openDatabase opens a database: the sessions are rows of a table. A client's other files (prompts,
// breadcrumbs, archived sessions) are not there.
func (o *opener) openDatabase(p *place) error {
	err := o.CheckSource()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	source, err := postgres.ParseSource(o.Source)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	rows, err := postgres.Open(context.Background(), source, postgres.Options{
		Memory:    o.memory,
		Log:       o.log,
		Temporary: temporaryDir(),
		Fresh:     postgres.Fresh,
		Empty:     o.Empty,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	p.closers = append(p.closers, rows.Close)
	if o.Blobs != "" {
		blobs, err := p.opened(dir.Open(o.Blobs))
		if err != nil {
			return fmt.Errorf("%w: -o blobs: %w", ErrSource, err)
		}
		p.blobs = &blobfs.Store{Storage: blobs}
	}
	p.files = rows
	p.top = rows.Known()
	p.root = strings.TrimSuffix(rows.Prefix(), "/")
	p.kind = &databaseKind{plainKind: plainKind{p}, rows: rows} // no client but omp has a database
	p.writer = writer.Options{
		Journal: rows,
		Scopes: func() clients.Scopes {
			return clients.ScopesOf(uint32(os.Geteuid()))
		},
	}
	if rows.Several() {
		p.nameOf = rows.NameOf
		p.writer.PathOf = rows.PathOf
		p.writer.Own = func() (string, error) {
			return ownSessions(rows, os.Getenv)
		}
	}
	p.space = unknownSpace
	return nil
}

// unknownSpace answers statfs for a database, which does not tell its free space.
func unknownSpace() (nodes.Space, error) {
	const block = 4096 // bytes; 0 would stop programs that divide by it
	return nodes.Space{BlockSize: block, FragmentSize: block}, nil
}

// databaseKind is the kind of a database.
type databaseKind struct {
	plainKind
	rows *postgres.Storage
}

// names returns the name of the blobs, if they lie in a directory.
func (k *databaseKind) names() []nodes.Name {
	if k.place.blobs == nil {
		return nil
	}
	return []nodes.Name{nodes.SourceName(blobsName, k.place.blobs.Storage, nil)}
}

// shown has the View say when the database is lost, and when it is back.
func (k *databaseKind) shown() { k.rows.Notify(k.place.view.Lost, k.place.view.Back) }

// ownSessions returns the directory in a database, of several people's sessions, with the sessions of this user's
// clients: of the first agent directory that has rows there. It is an error if none has.
func ownSessions(rows *postgres.Storage, getenv func(string) string) (dir string, err error) {
	home := getenv("HOME")
	var places []string
	xdg := filepath.Join(getenv("XDG_DATA_HOME"), "omp")
	omp := filepath.Join(home, ".omp", "agent")
	for _, agent := range []string{getenv("PI_CODING_AGENT_DIR"), xdg, omp} {
		if !filepath.IsAbs(agent) { // the variable is not set
			continue
		}
		place := filepath.Join(agent, layout.Sessions) + "/"
		dir, _, ok := strings.Cut(rows.NameOf(place), "/")
		if ok {
			return dir, nil
		}
		places = append(places, place)
	}
	const text = "%w: the sessions of several people are here, and none in %s, where yours would be: " +
		"mount with prefix=, the path of yours in the table"
	return "", fmt.Errorf(text, writer.ErrNotOwn, strings.Join(places, " or "))
}
