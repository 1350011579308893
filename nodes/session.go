package nodes

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// SessionDir is sessions/…/<session>/: a session as a directory.
type SessionDir struct {
	aboutSessions
	// beside is the directory that the session file is in.
	beside *SourceDir

	mu      sync.Mutex   // guards what follows
	pending pendingLinks // links that wait to be renamed to leaf
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
	{layout.Artifacts, syscall.S_IFDIR, (*SessionDir).makeArtifacts, (*SessionDir).hasArtifacts},
	{layout.Branches, syscall.S_IFDIR, makeBranches, nil},
	{"branches.tsv", syscall.S_IFREG, generated(report.Branches, nil), nil},
	{layout.ByLabel, syscall.S_IFDIR, makeByLabel, nil},
	{"children", syscall.S_IFDIR, makeChildren, nil},
	{"context.json", syscall.S_IFREG, makeContext, nil},
	{"cwd", syscall.S_IFREG, makeCWD, nil},
	{layout.Entries, syscall.S_IFDIR, makeEntries, nil},
	{"fork", syscall.S_IFREG, makeFork, nil},
	{"header.json", syscall.S_IFREG, generated(atOnce((*sessioncore.Snapshot).HeaderDocument), nil), nil},
	{"labels", syscall.S_IFREG, makeLabels, nil},
	{"last-error", syscall.S_IFREG, makeLastError, nil},
	{leafName, syscall.S_IFLNK, makeLeaf, (*SessionDir).hasLeaf},
	{"owner", syscall.S_IFREG, makeOwner, (*SessionDir).hasOwner},
	{"parent", syscall.S_IFLNK, makeParent, (*SessionDir).hasParent},
	{"problems.jsonl", syscall.S_IFREG, makeProblems, nil},
	{layout.Search, syscall.S_IFDIR, makeSearch, nil},
	{"secrets.jsonl", syscall.S_IFREG, generated(report.Secrets, nil), (*SessionDir).hasSecrets},
	{"title", syscall.S_IFREG, makeTitle, nil},
	{"transcript.md", syscall.S_IFREG, makeTranscript, nil},
	{layout.Tree, syscall.S_IFDIR, makeTree, nil},
	{"usage.json", syscall.S_IFREG, makeUsage, nil},
}

// isSessionFile reports whether a name is one of the fixed ones.
func isSessionFile(name string) bool {
	return slices.ContainsFunc(sessionFiles, func(f NameIn[*SessionDir]) bool { return f.Name == name })
}

// find finds a fixed name, or, unlisted, a name in artifacts/, so that the paths of
// tool output that sessions mention work (docs/design.md section 1).
func (d *SessionDir) find(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	if isSessionFile(it.name) {
		return sessionFiles.find(ctx, d, it)
	}
	if _, ok := d.pendingTarget(it.name); ok {
		return child{kind: kindPendingLink, mode: syscall.S_IFLNK, make: func() fusefs.InodeEmbedder {
			return newPendingLink(d, it.name)
		}}, nil
	}
	if d.hasArtifacts(ctx) == Absent {
		return child{}, syscall.ENOENT
	}
	return d.artifacts().find(ctx, snap, it, out)
}

// list leaves out the attributes of generated files that are not rendered yet.
func (d *SessionDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	items := sessionFiles.list(ctx, d, &d.node)
	for i := range items {
		it := &items[i]
		it.bare = it.bare && !d.isRendered(ctx, it.name)
	}
	return items, nil
}

// isRendered reports whether the size of a generated file is known for the current snapshot.
func (d *SessionDir) isRendered(ctx context.Context, name string) bool {
	child := d.GetChild(name)
	if child == nil {
		return false
	}
	file, ok := child.Operations().(*GeneratedFile)
	if !ok {
		return false
	}
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return false
	}
	defer snap.Release()
	size := file.size.Load()
	return size != nil && size.serial == snap.Serial()
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

func (d *SessionDir) makeArtifacts() fusefs.InodeEmbedder { return d.artifacts() }

// makeProblems makes problems.jsonl: what could not be read or joined or is missing.
func makeProblems(d *SessionDir) fusefs.InodeEmbedder {
	return generated(func(ctx context.Context, snap *sessioncore.Snapshot) (*document.Document, error) {
		return snap.ProblemsDocument(ctx, d.view.Blobs), nil
	}, &following{})(d)
}

// hasSecrets reports whether there is a secrets.jsonl, unlisted. Where secrets are masked it could only say that there are
// none.
func (d *SessionDir) hasSecrets(context.Context) Presence {
	if d.view.Redacted {
		return Absent
	}
	return Hidden
}
