package nodes

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/costs"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/transcript"
)

// SessionDir is sessions/…/<session>/: a session as a directory.
type SessionDir struct {
	aboutSessions
	// beside is the directory that the session file is in.
	beside *SourceDir
	// moved is where the session is, if it was found elsewhere; see wherever.
	moved atomic.Pointer[SessionDir]

	mu      sync.Mutex        // guards what follows
	pending map[string]string // targets of links that wait to be renamed to leaf
	// leafBack is when leaf exists again after it was removed.
	leafBack time.Time
}

func (d *SessionDir) sessionName() string { return d.session.Name() }

// newSessionDir returns the directory of the session file name.jsonl in dir.
func newSessionDir(dir *SourceDir, name string) *SessionDir {
	return &SessionDir{
		aboutSessions: newAboutSessions(dir.view, dir.sessions.Session(join(dir.dir, name+layout.SessionSuffix))),
		beside:        dir,
	}
}

// sessionFiles are the fixed names in a session's directory.
var sessionFiles = fixedNames[*SessionDir]{
	{"append", syscall.S_IFREG, makeAppend, nil},
	{layout.Artifacts, syscall.S_IFDIR, func(d *SessionDir) fusefs.InodeEmbedder { return d.artifacts() }, (*SessionDir).hasArtifacts},
	{layout.Branches, syscall.S_IFDIR, func(d *SessionDir) fusefs.InodeEmbedder { return &BranchesDir{d.part()} }, nil},
	{"branches.tsv", syscall.S_IFREG, generated(report.Branches), nil},
	{layout.ByLabel, syscall.S_IFDIR, func(d *SessionDir) fusefs.InodeEmbedder { return &ByLabelDir{d.part()} }, nil},
	{"children", syscall.S_IFDIR, func(d *SessionDir) fusefs.InodeEmbedder { return &ChildrenDir{d.alike()} }, nil},
	{"context.json", syscall.S_IFREG, func(d *SessionDir) fusefs.InodeEmbedder { return d.generated(atLeaf(d.view.contextAt)) }, nil},
	{"cwd", syscall.S_IFREG, makeCWD, nil},
	{layout.Entries, syscall.S_IFDIR, func(d *SessionDir) fusefs.InodeEmbedder { return &EntriesDir{d.part()} }, nil},
	{"fork", syscall.S_IFREG, makeFork, nil},
	{"header.json", syscall.S_IFREG, generated(atOnce((*sessioncore.Snapshot).HeaderDocument)), nil},
	{"labels", syscall.S_IFREG, makeLabels, nil},
	{"last-error", syscall.S_IFREG, makeLastError, nil},
	{leafName, syscall.S_IFLNK, func(d *SessionDir) fusefs.InodeEmbedder {
		return &LeafLink{Link: Link{node: node{view: d.view}, find: inSession(d.session, leafPath)}}
	}, (*SessionDir).hasLeaf},
	{"owner", syscall.S_IFREG, makeOwner, (*SessionDir).hasOwner},
	{"parent", syscall.S_IFLNK, func(d *SessionDir) fusefs.InodeEmbedder {
		return &Link{node: node{view: d.view}, rule: &cacheAttr, find: d.parentTarget}
	}, (*SessionDir).hasParent},
	{"problems.jsonl", syscall.S_IFREG, makeProblems, nil},
	{layout.Search, syscall.S_IFDIR, func(d *SessionDir) fusefs.InodeEmbedder { return &SearchDir{d.alike()} }, nil},
	{"secrets.jsonl", syscall.S_IFREG, generated(report.Secrets), (*SessionDir).hasSecrets},
	{"title", syscall.S_IFREG, makeTitle, nil},
	{"transcript.md", syscall.S_IFREG, makeTranscript, nil},
	{layout.Tree, syscall.S_IFDIR, func(d *SessionDir) fusefs.InodeEmbedder { return &TreeDir{snapshotDir: d.part(), up: 1} }, nil},
	{"usage.json", syscall.S_IFREG, makeUsage, nil},
}

// find finds a fixed name, or, unlisted, a name in artifacts/, so that the paths of
// tool output that sessions mention work (docs/design.md section 1).
func (d *SessionDir) find(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	if sessionFiles.has(it.name) {
		return sessionFiles.find(ctx, d, it)
	}
	if _, ok := d.pendingTarget(it.name); ok {
		return child{content: other, mode: syscall.S_IFLNK, make: func() fusefs.InodeEmbedder {
			return newPendingLink(d, it.name)
		}}, nil
	}
	if d.hasArtifacts(ctx) == Absent {
		return child{}, syscall.ENOENT
	}
	return d.artifacts().find(ctx, snap, it, out)
}

func (d *SessionDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	return sessionFiles.list(ctx, d, &d.node), nil
}

// artifacts returns the real directory beside the session file, which need not exist.
func (d *SessionDir) artifacts() *SourceDir {
	return d.beside.at(storage.BesideOf(d.beside.storage, d.session.Name(), layout.SessionSuffix))
}

// hasArtifacts reports whether that directory exists. An error is for who looks at it.
func (d *SessionDir) hasArtifacts(context.Context) Presence {
	artifacts := d.artifacts()
	st, err := artifacts.storage.Stat(artifacts.dir)
	return presentIf(err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind == storage.KindDir)
}

// makeProblems makes problems.jsonl: what could not be read or joined or is missing.
func makeProblems(d *SessionDir) fusefs.InodeEmbedder {
	return d.generated(func(ctx context.Context, snap *sessioncore.Snapshot) (*document.Document, error) {
		return report.Problems(ctx, snap, d.view.Blobs)
	}).growing()
}

// hasSecrets says that secrets.jsonl is not listed. Where secrets are masked it says what is.
func (d *SessionDir) hasSecrets(context.Context) Presence { return Hidden }

// aboutSessions is the base of the directories that show something of one session, or of all.
type aboutSessions struct {
	directory
	session *sessioncore.Session // nil for all
}

// alike is the base of another directory of the same session, or of all.
func (d *aboutSessions) alike() aboutSessions { return newAboutSessions(d.view, d.session) }

func newAboutSessions(view *View, session *sessioncore.Session) aboutSessions {
	return aboutSessions{newDirectory(view), session}
}

// stat returns the state of the session file, or of the directory of all.
func (d *aboutSessions) stat(ctx context.Context) (storage.Stat, error) {
	if d.session != nil {
		return d.session.Probe(ctx)
	}
	return d.view.Sessions.Storage().Stat("")
}

func (d *aboutSessions) fillAttr(ctx context.Context, out *fuse.Attr) error {
	st, err := d.stat(ctx)
	if err != nil {
		return err
	}
	d.fillDir(out, st)
	return nil
}

// member is the session among those in which parents and children are looked for.
func (d *aboutSessions) member() listing.Member {
	return listing.Member{Listing: d.view.Listing, Session: d.session}
}

// snapshotDir is the base of the directories that show a part of a session: their names are found in a snapshot.
type snapshotDir struct{ aboutSessions }

// part is the base of a directory that shows a part of the same session.
func (d *aboutSessions) part() snapshotDir { return snapshotDir{d.alike()} }

func (d *snapshotDir) acquire(ctx context.Context) (*sessioncore.Snapshot, error) {
	return d.session.Acquire(ctx)
}

// contextAt makes the context at an entry.
func (v *View) contextAt(ctx context.Context, snap *sessioncore.Snapshot, e sessioncore.Entry) (*document.Document, error) {
	return snap.Context(ctx, e, v.contextBlobs())
}

// makeTranscript makes transcript.md: the current branch as Markdown for people.
func makeTranscript(d *SessionDir) fusefs.InodeEmbedder {
	return d.generated(atLeaf(renderTranscript(&d.node, 0))).growing()
}

// renderTranscript renders a transcript whose directory is that many levels below a session's directory: its links begin
// there.
func renderTranscript(dir *node, below int) renderAt {
	up := func(levels int) string { return strings.Repeat("../", levels) }
	depth := strings.Count(dir.path(), "/") + 1
	links := transcript.Links{Entries: up(below) + "entries/", Blobs: up(depth) + "blobs/"}
	return func(ctx context.Context, snap *sessioncore.Snapshot, end sessioncore.Entry) (*document.Document, error) {
		return transcript.Render(ctx, snap, end, links)
	}
}

// makeUsage makes usage.json: what the session and its current branch cost in tokens and money. It also depends on the
// session that this one was forked from, as far as the caller may read that, and on those of its subagents.
func makeUsage(d *SessionDir) fusefs.InodeEmbedder {
	f := d.generated(atLeaf(d.renderUsage))
	f.besides = func(ctx context.Context) (storage.Token, error) {
		token := d.subagents().Token()
		parent, err := d.parent(ctx)
		if err == nil {
			var st storage.Stat
			st, err = parent.Session.Probe(ctx)
			token = token.With(st.Token)
		}
		return token, unlessNone(err)
	}
	return f
}

// subagents returns the sessions of the session's subagents.
func (d *SessionDir) subagents() costs.Subagents {
	return costs.SubagentsOf(d.view.Sessions.Storage(), d.session.Name())
}

func (d *SessionDir) renderUsage(ctx context.Context, snap *sessioncore.Snapshot, leaf sessioncore.Entry) (*document.Document, error) {
	parent, err := d.usageParent(ctx)
	if err != nil {
		return nil, err
	}
	if parent != nil {
		defer parent.Release()
	}
	prices := d.view.whole().Prices
	subagents, err := d.subagents().Sum(ctx, d.view.Sessions, prices)
	if err != nil {
		return nil, err
	}
	return report.Usage(ctx, snap, leaf, parent, prices, subagents)
}

// usageParent returns the session that parent leads to; nil where there is no such link.
func (d *SessionDir) usageParent(ctx context.Context) (*sessioncore.Snapshot, error) {
	parent, err := d.parent(ctx)
	if err != nil {
		return nil, unlessNone(err)
	}
	snap, err := parent.Session.Acquire(ctx)
	return snap, unlessNone(err)
}

// unlessNone returns nil for an error that means that there is no parent, or none for the caller.
func unlessNone(err error) error {
	if errors.Is(err, sessioncore.ErrNotFound) || errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, fs.ErrPermission) || storage.IsMissing(err) {
		return nil
	}
	return err
}

// parent finds the session that this one was forked from.
func (d *SessionDir) parent(ctx context.Context) (listing.Member, error) {
	return d.view.Family.Parent(ctx, d.member())
}

// parentTarget finds where parent leads. The link has the owner and the times of its own session, whose header names the
// parent.
func (d *SessionDir) parentTarget(ctx context.Context) (target, error) {
	parent, err := d.parent(ctx)
	if err != nil {
		return target{}, err
	}
	st, err := d.session.Probe(ctx)
	if err != nil {
		return target{}, err
	}
	return target{path: layout.RelativeTarget(d.path(), parent.Path()), st: st}, nil
}

// hasParent reports whether the session that this one was forked from is in the mount. An error counts as no, so that
// the rest of the directory can be listed.
func (d *SessionDir) hasParent(ctx context.Context) Presence {
	_, err := d.parentTarget(ctx)
	return presentIf(err == nil)
}
