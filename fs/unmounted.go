package fs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"sessionfs/mountopts"
	"sessionfs/nodes/direct"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/ledger"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/transfer"
)

// Unmounted is the tree of a mount for this process alone. It needs no FUSE.
type Unmounted struct {
	*direct.FS
	tree    *tree
	options mountopts.Options
	log     *slog.Logger
}

// Open opens o.Source like Mount, and mounts nothing. Callers must close it.
func Open(o mountopts.Options, log *slog.Logger) (*Unmounted, error) {
	t, err := openTree(o, log)
	if err != nil {
		return nil, err
	}
	t.view.Listing.SetBrief()
	t.place.runsPrograms()
	return &Unmounted{
		FS:      direct.New(t.root, log),
		tree:    t,
		options: o,
		log:     log,
	}, nil
}

// Sessions returns all sessions, last modified first. Callers must not modify the slice.
func (u *Unmounted) Sessions(ctx context.Context) ([]*listing.Info, error) {
	all, err := u.tree.view.Listing.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	return all.All(), nil
}

// LeftOut says that the last list left out files which no known agent wrote, "" for none.
func (u *Unmounted) LeftOut() string { return u.tree.leftOut(u.tree.view.Listing.Strangers()) }

// Refused says of each agent that could not be opened, of several, why it is left out.
func (u *Unmounted) Refused() []string { return u.tree.refused }

// Snapshot returns the session of a directory in the mount, without links. Callers must release it.
func (u *Unmounted) Snapshot(ctx context.Context, dir string) (*sessioncore.Snapshot, error) {
	snap, _, _, err := u.acquire(ctx, dir)
	return snap, err
}

// Header returns the header of the session of a directory in the mount, without links. It neither converts nor
// indexes the session.
func (u *Unmounted) Header(ctx context.Context, dir string) (header []byte, err error) {
	_, _, err = u.ofSession(dir, func(store *sessioncore.Store, name string) error {
		header, err = sessioncore.ReadHeaderOf(ctx, store.Storage(), name)
		return err
	})
	if err == nil && header == nil {
		err = sessioncore.ErrNotSession
	}
	return header, err
}

// acquire returns the session of Snapshot with its store and the name of its file there.
func (u *Unmounted) acquire(ctx context.Context, dir string) (
	snap *sessioncore.Snapshot, store *sessioncore.Store, name string, err error,
) {
	store, name, err = u.ofSession(dir, func(store *sessioncore.Store, name string) error {
		snap, err = store.Session(name).Acquire(ctx)
		return err
	})
	return snap, store, name, err
}

// ofSession calls do with the store of the session of a directory, and the name of its file there, and returns these
// with its error. If there is no such file, it calls do once more for the file of a subagent, which lies beside the
// others and is shown in artifacts/.
func (u *Unmounted) ofSession(dir string, do func(store *sessioncore.Store, name string) error) (
	store *sessioncore.Store, name string, err error,
) {
	top, below, _ := strings.Cut(dir, "/")
	store = u.tree.store
	if top == layout.Archive {
		store = u.tree.archive.store
	}
	name = below + layout.SessionSuffix
	err = do(store, name)
	beside := strings.ReplaceAll(name, "/artifacts/", "/")
	if beside != name && storage.IsMissing(err) {
		name = beside
		err = do(store, name)
	}
	return store, name, err
}

// LimitGarbage sets how much garbage the process may have for 100 bytes in use, from now on.
func (u *Unmounted) LimitGarbage(percent int) { budget.FixPercent(percent) }

// NewestFirst returns all sessions, last modified first, as they are read.
func (u *Unmounted) NewestFirst(ctx context.Context) iter.Seq2[*listing.Info, error] {
	return u.tree.view.Listing.NewestFirst(ctx)
}

// NewestNamed is NewestFirst for a list of names: sessions may lack all but name, place, times and size.
func (u *Unmounted) NewestNamed(ctx context.Context) iter.Seq2[*listing.Info, error] {
	return u.tree.view.Listing.NewestNamed(ctx)
}

// Resuming returns the sessions that --resume may mean by a key, first the one that it takes, then
// the others, last modified first.
func (u *Unmounted) Resuming(ctx context.Context, key string) ([]*listing.Info, error) {
	const known = false
	return u.tree.view.Listing.Resuming(ctx, key, known)
}

// OpenSources returns an empty set of sources for imports. Callers must close it.
func OpenSources() (*transfer.Sources, error) { return transfer.Open(temporaryDir()) }

// Importer returns an importer of sessions into SOURCE, of several agents into the first that can be written: into the
// directory to in sessions/, unless that is "". An absolute path stands for the directory of the sessions of that
// working directory.
func (u *Unmounted) Importer(ctx context.Context, to string) (_ *transfer.Importer, err error) {
	p := u.tree.place
	part := p.writable()
	if part != nil {
		p = part
	}
	if p.frozen != nil {
		return nil, fmt.Errorf("sessions of that agent are written by it alone: name the agent directory of %s or pi",
			strings.Join(Receivers(), ", "))
	}
	view := p.view
	directory := ""
	if transfer.IsWorkingDirectory(to) {
		directory = transfer.CleanDirectory(to)
		to, err = view.Writer.DirFor(ctx, directory, sessioncore.OMP)
	} else if to != "" {
		err = storage.CheckName(to)
	}
	if err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	return &transfer.Importer{
		Files:         p.store.Storage(),
		Writer:        view.Writer,
		Listing:       view.Listing,
		Blobs:         p.transferred(),
		SessionsAlone: p.source == nil, // a database has no files beside them
		To:            to,
		Directory:     directory,
	}, nil
}

// transferred returns the blobs for a transfer, nil if there is no place for them.
func (p *place) transferred() transfer.BlobStores {
	if p.blobs == nil {
		return nil
	}
	return p.blobs
}

// Bundler returns a writer of bundles of sessions to out. It calls left for a file that it leaves out, with the reason.
// Callers must close it.
func (u *Unmounted) Bundler(out io.Writer, left func(what string, err error)) *transfer.Bundler {
	return &transfer.Bundler{
		Out:      tar.NewWriter(out),
		Blobs:    u.tree.transferred(),
		Redacted: u.tree.view.Redacted,
		People:   u.tree.nameOf != nil,
		Masked:   map[string]int{},
		Left:     left,
	}
}

// FileOf returns the path of this machine of a session's own file, by its directory in the mount without
// links.
func (u *Unmounted) FileOf(at string) (string, error) {
	top, name, _ := strings.Cut(strings.TrimSuffix(at, layout.SessionSuffix), "/")
	p := u.tree.place
	if top == layout.Archive {
		return path.Join(u.tree.archive.root, name+layout.SessionSuffix+layout.ArchiveSuffix), nil
	}
	if p.parts != nil {
		var agent string
		agent, name, _ = strings.Cut(name, "/")
		p = p.partOf(agent)
		if p == nil {
			return "", errNotBundled
		}
	}
	name = strings.ReplaceAll(name, "/artifacts/", "/") + layout.SessionSuffix
	return p.kind.fileOf(name)
}

// Bundle adds the session at a path of the mount without links to a bundle. A path of no session is an error, and so is
// a session of another agent, unless it is masked.
func (u *Unmounted) Bundle(ctx context.Context, b *transfer.Bundler, at string) error {
	top, name, _ := strings.Cut(strings.TrimSuffix(at, layout.SessionSuffix), "/")
	if top == layout.Archive && name != "" {
		return addToBundle(ctx, b, u.tree.archive.files, name+layout.SessionSuffix)
	}
	p := u.tree.place
	if p.parts != nil && top == layout.Sessions {
		var agent string
		agent, name, _ = strings.Cut(name, "/")
		part := p.partOf(agent)
		if part != nil {
			p = part
			b.Blobs = p.transferred()
		}
	}
	switch {
	case top != layout.Sessions, name == "":
		return errNotBundled
	case p.foreign != nil && b.Redacted:
		return p.bundleForeign(ctx, b, name)
	case p.frozen != nil:
		return errors.New("it is a session of another agent: --redact makes a masked session of omp of it; " +
			"unmasked, copy its file, which sessionfs import takes")
	}
	return addToBundle(ctx, b, p.store.Storage(), name+layout.SessionSuffix)
}

// addToBundle adds a session file to a bundle. For a missing one the error is errNotBundled.
func addToBundle(ctx context.Context, b *transfer.Bundler, files storage.Files, name string) error {
	err := b.Add(ctx, files, name)
	if storage.IsMissing(err) {
		return errNotBundled
	}
	return err
}

// bundleForeign adds a session of another agent, masked, to a bundle: the file of a directory name in sessions/. For a
// missing one the error is errNotBundled.
func (p *place) bundleForeign(ctx context.Context, b *transfer.Bundler, name string) error {
	session := *p.foreign // a copy: each session has its own name
	session.Name = strings.ReplaceAll(name, "/artifacts/", "/") + layout.SessionSuffix
	session.Path = path.Join(p.root, session.Name)
	session.Writer = p.view.Writer
	err := b.AddForeign(ctx, session)
	if storage.IsMissing(err) {
		return errNotBundled
	}
	return err
}

// errNotBundled refuses a path of no session.
var errNotBundled = errors.New("it is not a session")

// Close closes all that Open has opened.
func (u *Unmounted) Close() { u.tree.close() }

// Searcher returns a searcher of a query's sessions, for nil of all sessions. It finds at most limit hits, 0 for all.
func (u *Unmounted) Searcher(query *search.Query, limit int) (*search.Searcher, error) {
	view := u.tree.view
	if query != nil {
		var err error
		view, err = view.Searched(query)
		if err != nil {
			return nil, err
		}
	}
	sessions := view.Searcher().SearchedSessions
	sessions.Limit = limit
	return search.New(sessions), nil
}

// Count says which costs are added up. The zero value counts all by days.
type Count struct {
	Tools       bool      // calls of tools: Model is the tool, and AssistantMessages are its calls
	Hours       bool      // by hours
	From, Until time.Time // answers at or after From and before Until; zero for any
	Written     time.Time // only of sessions in files that were modified at or after it; zero for all
	Titles      bool      // the Sessions of the rows have their titles
	// Only reports whether a session counts; nil counts all.
	Only func(*listing.Info) bool
}

// sessions returns the sessions of a listing with costs that may count: Only and the times of answers choose among
// them. It reads no more of them than is needed.
func (c *Count) sessions(ctx context.Context, of *listing.Listing) ([]*listing.Info, error) {
	if !c.Written.IsZero() {
		return of.ModifiedSince(ctx, c.Written.UnixNano())
	}
	if !c.Titles {
		return of.Placed(ctx)
	}
	all, err := of.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	return all.All(), nil
}

// Costs calls each with the rows that usage.jsonl sums up by local days, as c chooses them, and with the agent of their
// sessions. Bills are kept for the next command where openLedger allows it.
func (u *Unmounted) Costs(ctx context.Context, c Count, each func(r report.Row, agent string)) error {
	t := u.tree
	sessions, err := c.sessions(ctx, t.view.Listing)
	if err != nil {
		return err
	}
	if c.Only != nil {
		sessions = slices.DeleteFunc(slices.Clone(sessions), func(i *listing.Info) bool {
			return !c.Only(i)
		})
	}
	var kept *ledger.Book
	var all *report.Costs
	if c.Tools {
		all = report.NewCalls(t.store)
	} else {
		kept = u.openLedger()
		all = report.NewCosts(t.billed(), t.view.Prices).Recall(kept)
	}
	all.During(c.From, c.Until, c.Hours)
	err = all.Rows(ctx, sessions, func(r report.Row) error {
		agent := r.Session.Agent()
		if agent == "" {
			agent = t.agentOf(r.Session.Name())
		}
		each(r, agent)
		return nil
	})
	if err != nil {
		return err
	}
	err = kept.Save() // a nil Book saves nothing
	if err != nil {
		u.log.Debug("the charges of sessions are not kept", "why", err)
	}
	return nil
}

// StateOf returns a text that changes when a session or one of its subagents' sessions does.
func (u *Unmounted) StateOf(info *listing.Info) string {
	token := info.Stat.Token
	subagents := report.SubagentsOf(u.tree.store.Storage(), info.Name()).Token()
	return fmt.Sprint(token.Inode, token.Modified, token.Changed, info.Size, subagents.Inode, subagents.Modified)
}

// Bill is the cost of a session and of its subagents' sessions.
type Bill struct {
	report.Sum
	Agent  string   // of the session
	Models []string // the one with the most tokens first
}

// Spent returns the session of a directory in the mount, without links, and its bill. Callers must
// release the session, unless there is an error.
func (u *Unmounted) Spent(ctx context.Context, dir string) (snap *sessioncore.Snapshot, b Bill, err error) {
	snap, store, name, err := u.acquire(ctx, dir)
	if err != nil {
		return nil, b, err
	}
	b.Agent = u.tree.agentOf(name)
	if u.tree.parts != nil {
		b.Agent, _, _ = strings.Cut(name, "/")
	}
	prices := u.tree.view.Prices
	subagents := report.SubagentsOf(store.Storage(), name)
	ofSubagents, err := subagents.Sum(ctx, store, prices)
	if err == nil {
		b.Sum, b.Models, err = report.Spent(ctx, snap, prices, ofSubagents)
	}
	if err != nil {
		snap.Release()
	}
	return snap, b, err
}

// Prices returns the list prices for answers without a recorded cost.
func (u *Unmounted) Prices() report.Prices { return u.tree.view.Prices }
