package nodes

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/view"
)

// SessionDir is sessions/…/<session>/: a session as a directory.
type SessionDir struct {
	aboutSessions
	// beside is the directory of the session file.
	beside *SourceDir
	// moved is the session's new directory, if it was moved; see retryIfMoved.
	moved atomic.Pointer[SessionDir]

	// leafBack is the time when leaf exists again after it was removed, in nanoseconds since 1970.
	leafBack atomic.Int64
	mu       sync.Mutex        // guards pending
	pending  map[string]string // targets of links that wait to be renamed to leaf
}

// newSessionDir returns the directory of the session file name.jsonl in dir.
func newSessionDir(dir *SourceDir, name string) *SessionDir {
	base := dir.below(name)
	file := path.Join(dir.dir, name+layout.SessionSuffix)
	base.subject = &subject{
		view:    dir.view,
		session: dir.sessions.Session(file),
	}
	return &SessionDir{
		aboutSessions: aboutSessions{Directory: base},
		beside:        dir,
	}
}

// sessionFiles are the fixed names in a session's directory.
var sessionFiles = fixedNames[*SessionDir]{
	{Name: "append", Kind: storage.KindFile, Make: makeAppend},
	{
		Name: layout.Artifacts,
		Kind: storage.KindDir,
		Make: func(d *SessionDir) Node {
			return d.artifacts(d.below(layout.Artifacts))
		},
		Is: (*SessionDir).hasArtifacts,
	},
	{
		Name: layout.Branches,
		Kind: storage.KindDir,
		Make: func(d *SessionDir) Node {
			return &BranchesDir{d.part(layout.Branches)}
		},
	},
	{
		Name: "branches.tsv",
		Kind: storage.KindFile,
		Make: func(d *SessionDir) Node {
			return d.generated(report.Branches)
		},
	},
	{
		Name: layout.ByLabel,
		Kind: storage.KindDir,
		Make: func(d *SessionDir) Node {
			return &ByLabelDir{d.part(layout.ByLabel)}
		},
	},
	{
		Name: "children",
		Kind: storage.KindDir,
		Make: func(d *SessionDir) Node {
			return &ChildrenDir{d.about("children")}
		},
	},
	{
		Name: "context.json",
		Kind: storage.KindFile,
		Make: func(d *SessionDir) Node {
			return d.generated(atLeaf(d.view.contextAt))
		},
	},
	{Name: "cwd", Kind: storage.KindFile, Make: makeCWD},
	{
		Name: layout.Entries,
		Kind: storage.KindDir,
		Make: func(d *SessionDir) Node {
			return &EntriesDir{d.part(layout.Entries)}
		},
	},
	{Name: "fork", Kind: storage.KindFile, Make: makeFork},
	{
		Name: "header.json",
		Kind: storage.KindFile,
		Make: func(d *SessionDir) Node {
			return d.generated(atOnce((*sessioncore.Snapshot).HeaderDocument))
		},
	},
	{Name: "labels", Kind: storage.KindFile, Make: makeLabels},
	{
		Name: "last-error",
		Kind: storage.KindFile,
		Make: func(d *SessionDir) Node {
			return newLastErrorFile(&d.Directory)
		},
	},
	{
		Name: leafName,
		Kind: storage.KindLink,
		Make: func(d *SessionDir) Node {
			return &LeafLink{targetLink: targetLink{node: d.file(), find: inSession(d.session, leafPath)}}
		},
		Is: (*SessionDir).hasLeaf,
	},
	{
		Name: "owner",
		Kind: storage.KindFile,
		Make: makeOwner,
		Is:   (*SessionDir).hasOwner,
	},
	{
		Name: "parent",
		Kind: storage.KindLink,
		Make: func(d *SessionDir) Node {
			return &targetLink{node: d.file(), find: d.parentTarget, stability: Relinked}
		},
		Is: (*SessionDir).hasParent,
	},
	{Name: "problems.jsonl", Kind: storage.KindFile, Make: makeProblems},
	{
		Name: layout.Search,
		Kind: storage.KindDir,
		Make: func(d *SessionDir) Node {
			return &SearchDir{d.about(layout.Search)}
		},
	},
	{
		Name: "secrets.jsonl",
		Kind: storage.KindFile,
		Make: func(d *SessionDir) Node {
			return d.generated(report.Secrets) // redacted: the masked places
		},
		Is: hidden[*SessionDir](),
	},
	{Name: "title", Kind: storage.KindFile, Make: makeTitle},
	{Name: "transcript.md", Kind: storage.KindFile, Make: makeTranscript},
	{
		Name: layout.Tree,
		Kind: storage.KindDir,
		Make: func(d *SessionDir) Node {
			return &TreeDir{snapshotDir: d.part(layout.Tree), up: 1}
		},
	},
	{Name: "usage.json", Kind: storage.KindFile, Make: makeUsage},
}

// Find finds a fixed name, or, unlisted, a name in artifacts/, so that paths in tool output work
// (docs/design.md section 1).
func (d *SessionDir) Find(ctx context.Context, snap *sessioncore.Snapshot, it Item) (Child, error) {
	if sessionFiles.has(it.Name) {
		return sessionFiles.find(ctx, d, it)
	}
	_, ok := d.pendingTarget(it.Name)
	if ok {
		return Child{
			Content: replaced,
			Kind:    storage.KindLink,
			Make: func() Node {
				return newPendingLink(d, it.Name)
			},
		}, nil
	}
	if d.hasArtifacts(ctx) == Absent {
		return Child{}, syscall.ENOENT
	}
	return d.artifacts(d.Directory).Find(ctx, snap, it)
}

func (d *SessionDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	return sessionFiles.list(ctx, d), nil
}

// artifacts returns the real directory beside the session file, whether it exists or not, at base as its place
// in the mount.
func (d *SessionDir) artifacts(base Directory) *SourceDir {
	return d.beside.mountedAt(base, strings.TrimSuffix(d.session.Name(), layout.SessionSuffix))
}

// hasArtifacts reports whether the directory of artifacts exists. If its state cannot be read, it is
// listed, so that a lookup returns the error.
func (d *SessionDir) hasArtifacts(context.Context) Presence {
	artifacts := d.artifacts(d.Directory)
	st, err := artifacts.storage.Stat(artifacts.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Absent
	}
	if err != nil {
		return Listed
	}
	return presentIf(st.Kind == storage.KindDir)
}

// makeProblems makes problems.jsonl: texts that could not be read or linked, and missing ones.
func makeProblems(d *SessionDir) Node {
	return d.generated(func(ctx context.Context, snap *sessioncore.Snapshot) (*document.Document, error) {
		return report.Problems(ctx, snap, d.view.Blobs)
	}).growing()
}

// aboutSessions is the base of directories about one session, or all.
type aboutSessions struct{ Directory }

// about returns the base of a directory in d about the same session, or all.
func (d *Directory) about(name string) aboutSessions { return aboutSessions{d.below(name)} }

// stat returns the state of the session file, or of the directory of all.
func (d *aboutSessions) stat(ctx context.Context) (storage.Stat, error) {
	if d.session != nil {
		return d.session.Probe(ctx)
	}
	return d.view.Sessions.Storage().Stat("")
}

// Stat returns directory attributes from the session file, or from the directory of all.
func (d *aboutSessions) Stat(ctx context.Context) (Attr, error) {
	st, err := d.stat(ctx)
	a := d.view.dirAttr(st)
	if d.session == nil {
		a = a.private()
	}
	return a, err
}

// member returns the session for a search of its parents and children.
func (d *aboutSessions) member() listing.ListedSession {
	return listing.ListedSession{Listing: d.view.Listing, Session: d.session}
}

// snapshotDir is the base of directories that show a part of a session, as of a snapshot.
type snapshotDir struct{ aboutSessions }

// part returns the base of a directory in d that shows a part of the same session.
func (d *aboutSessions) part(name string) snapshotDir { return snapshotDir{d.about(name)} }

func (d *snapshotDir) Acquire(ctx context.Context) (*sessioncore.Snapshot, error) {
	return d.session.Acquire(ctx)
}

// contextAt renders the context at an entry, with the texts of blobs in place of references unless v.BlobRefs.
func (v *View) contextAt(
	ctx context.Context, snap *sessioncore.Snapshot, e sessioncore.Entry,
) (*document.Document, error) {
	if v.BlobRefs {
		return snap.Context(ctx, e, nil)
	}
	return snap.Context(ctx, e, v.Blobs)
}

// makeTranscript makes transcript.md: the current branch as Markdown.
func makeTranscript(d *SessionDir) Node {
	return d.generated(atLeaf(renderTranscript(&d.Directory, 0))).growing()
}

// renderTranscript renders a transcript in a directory that is that many levels below a session's.
// Its links are relative to it.
func renderTranscript(dir *Directory, below int) renderAt {
	toSession := strings.Repeat("../", below)
	depth := strings.Count(dir.path(), "/") + 1
	toRoot := strings.Repeat("../", depth)
	links := view.Links{Entries: toSession + "entries/", Blobs: toRoot + "blobs/"}
	return func(ctx context.Context, snap *sessioncore.Snapshot, end sessioncore.Entry) (*document.Document, error) {
		return view.Render(ctx, snap, end, links)
	}
}

// makeUsage makes usage.json: the cost of the session and its current branch in tokens and money.
// It also depends on the session's parent, if the caller may read that, and on its subagents.
func makeUsage(d *SessionDir) Node {
	f := d.generated(atLeaf(d.renderUsage))
	f.otherState = func(ctx context.Context) (storage.Token, error) {
		token := d.subagents().Token()
		parent, err := d.parent(ctx)
		if err != nil {
			return token, ignoreMissing(err)
		}
		st, err := parent.Session.Probe(ctx)
		return token.With(st.Token), ignoreMissing(err)
	}
	return f
}

// subagents returns the sessions of the session's subagents.
func (d *SessionDir) subagents() report.Subagents {
	return report.SubagentsOf(d.view.Sessions.Storage(), d.session.Name())
}

// renderUsage makes usage.json, with the costs of subagents, and without the costs of the session that
// this one is a fork of.
func (d *SessionDir) renderUsage(
	ctx context.Context, snap *sessioncore.Snapshot, leaf sessioncore.Entry,
) (*document.Document, error) {
	parent, err := d.acquireParent(ctx)
	if err != nil {
		return nil, err
	}
	if parent != nil {
		defer parent.Release()
	}
	prices := d.view.rootView().Prices
	subagents, err := d.subagents().Sum(ctx, d.view.Sessions, prices)
	if err != nil {
		return nil, err
	}
	return report.Usage(ctx, snap, leaf, parent, prices, subagents)
}

// acquireParent acquires the session that this one is a fork of, or nil if there is none that can be read.
func (d *SessionDir) acquireParent(ctx context.Context) (*sessioncore.Snapshot, error) {
	parent, err := d.parent(ctx)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	snap, err := parent.Session.Acquire(ctx)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	return snap, nil
}

// ignoreMissing returns nil for errors that mean that the caller can read no parent, and other errors as they
// are.
func ignoreMissing(err error) error {
	if storage.IsMissing(err) {
		return nil
	}
	for _, unreadable := range []error{sessioncore.ErrNotFound, sessioncore.ErrNotSession, fs.ErrPermission} {
		if errors.Is(err, unreadable) {
			return nil
		}
	}
	return err
}

// parent finds the session that this one is a fork of. The error wraps sessioncore.ErrNotFound if there is none.
func (d *SessionDir) parent(ctx context.Context) (listing.ListedSession, error) {
	return d.view.Family.Parent(ctx, d.member())
}

// parentTarget finds the target of parent. The link has the owner and the times of its own session, as
// the header of that names the parent.
func (d *SessionDir) parentTarget(ctx context.Context) (target, error) {
	parent, err := d.parent(ctx)
	if err != nil {
		return target{}, err
	}
	st, err := d.session.Probe(ctx)
	return target{path: layout.RelativeTarget(d.path(), parent.Path()), st: st}, err
}

// hasParent reports whether the session's parent is in the mount. An error counts as no, so that
// the rest of the directory can be listed.
func (d *SessionDir) hasParent(ctx context.Context) Presence {
	_, err := d.parentTarget(ctx)
	return presentIf(err == nil)
}
