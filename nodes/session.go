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
	"sessionfs/sessioncore/storage"
)

// SessionDir is sessions/…/<session>/: a session as a directory.
type SessionDir struct {
	snapshotDir
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
		snapshotDir: newSnapshotDir(dir.view, dir.sessions.Session(join(dir.dir, name+layout.SessionSuffix))),
		beside:      dir,
	}
}

// sessionFile is a fixed name in a session's directory.
type sessionFile struct {
	name string
	mode uint32 // file type bits
	// present reports whether it exists; nil means always.
	present func(*SessionDir, context.Context) (bool, error)
	make    func(*snapshotDir) fusefs.InodeEmbedder
	// unlisted names are found, but not listed: to make the file is so much work that no crawler may start it.
	unlisted bool
}

// sessionFiles are the fixed names, in order: the one list that drives Lookup and listing.
var sessionFiles = []sessionFile{
	{"append", syscall.S_IFREG, nil, makeAppend, false},
	{layout.Artifacts, syscall.S_IFDIR, (*SessionDir).hasArtifacts, makeArtifacts, false},
	{layout.Branches, syscall.S_IFDIR, nil, makeBranches, false},
	{"branches.tsv", syscall.S_IFREG, nil, generated(renderBranches, nil), false},
	{layout.ByLabel, syscall.S_IFDIR, nil, makeByLabel, false},
	{"children", syscall.S_IFDIR, nil, makeChildren, false},
	{"context.json", syscall.S_IFREG, nil, generated(renderContext, nil), false},
	{"cwd", syscall.S_IFREG, nil, makeCWD, false},
	{layout.Entries, syscall.S_IFDIR, nil, makeEntries, false},
	{"fork", syscall.S_IFREG, nil, makeFork, false},
	{"header.json", syscall.S_IFREG, nil, generated(renderHeader, nil), false},
	{"labels", syscall.S_IFREG, nil, makeLabels, false},
	{"last-error", syscall.S_IFREG, nil, makeLastError, false},
	{leafName, syscall.S_IFLNK, (*SessionDir).showsLeaf, makeLeaf, false},
	{"owner", syscall.S_IFREG, (*SessionDir).showsOwner, makeOwner, true},
	{parentName, syscall.S_IFLNK, (*SessionDir).hasParent, makeParent, false},
	{"problems.jsonl", syscall.S_IFREG, nil, generated(renderProblems, &following{}), false},
	{layout.Search, syscall.S_IFDIR, nil, makeSearch, false},
	{"secrets.jsonl", syscall.S_IFREG, (*SessionDir).showsSecrets, generated(renderSecrets, nil), true},
	{"title", syscall.S_IFREG, nil, makeTitle, false},
	{"transcript.md", syscall.S_IFREG, nil, makeTranscript, false},
	{layout.Tree, syscall.S_IFDIR, nil, makeTree, false},
	{"usage.json", syscall.S_IFREG, nil, makeUsage, false},
}

// isSessionFile reports whether a name is one of the fixed ones.
func isSessionFile(name string) bool {
	return slices.ContainsFunc(sessionFiles, func(f sessionFile) bool { return f.name == name })
}

var _ = (fusefs.NodeLookuper)((*SessionDir)(nil))

// Lookup finds a fixed name, or, unlisted, a name in artifacts/, so that the paths of
// tool output that sessions mention work (docs/design.md section 1).
func (d *SessionDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	for i := range sessionFiles {
		f := &sessionFiles[i]
		if f.name != name {
			continue
		}
		if f.present != nil {
			ok, err := f.present(d, ctx)
			if err != nil {
				return nil, d.view.fail("lookup", d.path()+"/"+name, err)
			}
			if !ok {
				return nil, syscall.ENOENT
			}
		}
		return d.enterFixed(ctx, f, out)
	}
	if _, ok := d.pendingTarget(name); ok {
		id := stableAttr(d.StableAttr(), kindPendingLink, name, syscall.S_IFLNK)
		return d.enter(ctx, d.child(ctx, id, name, func() fusefs.InodeEmbedder {
			return newPendingLink(d, name)
		}), out)
	}
	if ok, err := d.hasArtifacts(ctx); err != nil || !ok {
		return nil, syscall.ENOENT
	}
	return d.artifacts().lookupIn(ctx, &d.node, name, out)
}

func (d *SessionDir) enterFixed(ctx context.Context, f *sessionFile, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(d.StableAttr(), kindStatic, f.name, f.mode)
	return d.enter(ctx, d.named(ctx, id, f.name, 0, func() fusefs.InodeEmbedder { return f.make(&d.snapshotDir) }), out)
}

func (d *SessionDir) list(ctx context.Context) ([]item, error) {
	items := make([]item, 0, len(sessionFiles))
	for i, f := range sessionFiles {
		if f.unlisted {
			continue
		}
		if f.present != nil {
			if ok, err := f.present(d, ctx); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
		}
		it := d.newItem(kindStatic, f.name, f.mode)
		it.number = int32(i)
		items = append(items, it)
	}
	return items, nil
}

func (d *SessionDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if slowFiles[it.name] && !d.isRendered(ctx, it.name) {
		return nil, syscall.ENOENT // the kernel then looks it up itself
	}
	return d.enterFixed(ctx, &sessionFiles[it.number], out)
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

func (d *SessionDir) hasArtifacts(_ context.Context) (bool, error) {
	artifacts := d.artifacts()
	st, err := artifacts.storage.Stat(artifacts.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Kind == storage.KindDir, err
}

// hasParent reports whether the session that this one was forked from is in the mount. An error counts as no, so that
// the rest of the directory can be listed.
func (d *SessionDir) hasParent(ctx context.Context) (bool, error) {
	_, err := findParent(ctx, &d.snapshotDir)
	return err == nil, ctx.Err()
}

// makeArtifacts makes artifacts/, the real directory beside the session file.
func makeArtifacts(d *snapshotDir) fusefs.InodeEmbedder {
	return d.Operations().(*SessionDir).artifacts()
}
