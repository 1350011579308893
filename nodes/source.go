package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// SourceDir is a directory of SOURCE as it is: sessions/ and all below it, artifacts/, blobs/ and
// terminal-sessions/. Where it may hold sessions, each session file has a directory of its name beside
// it (docs/design.md section 1).
type SourceDir struct {
	directory
	lookupCount
	storage storage.Files
	dir     string // path in storage, "" for the root
	// sessions are those of storage; nil if all files are shown as they are.
	sessions *sessioncore.Store
	// plain says that no session file of its name was beside it when it was looked up.
	plain bool
}

// NewSourceDir returns the directory that shows the root of a storage.
// sessions is nil where it holds no sessions.
func NewSourceDir(view *View, storage storage.Files, sessions *sessioncore.Store) *SourceDir {
	return &SourceDir{directory: directory{node{view: view}}, storage: storage, sessions: sessions}
}

// at returns another directory of the same storage.
func (d *SourceDir) at(dir string) *SourceDir {
	return &SourceDir{directory: directory{node{view: d.view}}, storage: d.storage, dir: dir, sessions: d.sessions}
}

func (d *SourceDir) fillAttr(_ context.Context, out *fuse.Attr) error {
	st, err := d.storage.Stat(d.dir)
	if err != nil {
		return err
	}
	if st.Kind != storage.KindDir {
		return fmt.Errorf("%w: it is no directory any more", fs.ErrNotExist)
	}
	d.fillDir(out, st)
	return nil
}

var _ = (fusefs.NodeLookuper)((*SourceDir)(nil))

// Lookup finds a file, link or directory of SOURCE, or the directory that shows a session.
func (d *SourceDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	d.n.Add(1)
	child, errno := d.lookupIn(ctx, &d.node, name, out)
	if errno == syscall.ENOENT && isSessionFile(name) && d.isOutdated(ctx) {
		return nil, syscall.ESTALE
	}
	return child, errno
}

// isOutdated reports whether the name of a plain directory has become that of a session: for example the file was
// restored after the directory beside it. The kernel remembers names of directories for a second; ESTALE makes it look
// up the name again.
func (d *SourceDir) isOutdated(ctx context.Context) bool {
	if !d.plain {
		return false
	}
	dir, name := path.Split(d.dir)
	above := SourceDir{dir: strings.TrimSuffix(dir, "/"), sessions: d.sessions}
	isSession, _ := above.isSession(ctx, name)
	return isSession
}

// lookupIn looks a name up and makes it a child of parent.
func (d *SourceDir) lookupIn(ctx context.Context, parent *node, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if layout.Hidden(name) {
		return nil, syscall.ENOENT
	}
	st, err := d.storage.Stat(join(d.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	if err != nil {
		st.Kind = storage.KindOther
	}
	if st.Kind == storage.KindFile || st.Kind == storage.KindLink && !d.isMoving(name) {
		return d.enterItem(ctx, parent, name, st, out)
	}
	isSession, err := d.isSession(ctx, name)
	switch {
	case err != nil:
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	case isSession:
		return d.enterSession(ctx, parent, name, out)
	case st.Kind == storage.KindDir, st.Kind == storage.KindLink:
		return d.enterItem(ctx, parent, name, st, out)
	}
	return nil, syscall.ENOENT
}

// isMoving reports whether a link leads to the artifacts of the session of its name, which is being moved, or was when the
// one who moved it was killed. Then the link is not shown.
func (d *SourceDir) isMoving(name string) bool {
	at := join(d.dir, name)
	return d.sessions != nil && storage.BesideOf(d.storage, at+layout.SessionSuffix, layout.SessionSuffix) != at
}

// sessionName returns the name of the directory that shows a session file.
func (d *SourceDir) sessionName(file string) (name string, ok bool) {
	if d.view.Archived() {
		file = strings.TrimSuffix(file, layout.ArchiveSuffix)
	}
	return layout.SessionName(file)
}

// isSession reports whether there is a session file for a directory of that name.
func (d *SourceDir) isSession(ctx context.Context, name string) (bool, error) {
	if d.sessions == nil || name == "" || name[0] == '.' || len(name)+len(layout.SessionSuffix) > syscall.NAME_MAX {
		return false, nil
	}
	_, err := d.sessions.Probe(ctx, join(d.dir, name+layout.SessionSuffix))
	switch {
	case err == nil:
		return true, nil
	case errnoOf(err) == syscall.ENOENT, errnoOf(err) == syscall.EACCES:
		return false, nil
	default:
		return false, err
	}
}

// enterItem answers a lookup with a file, link or directory of SOURCE.
func (d *SourceDir) enterItem(ctx context.Context, parent *node, name string, st storage.Stat, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	path := join(d.dir, name)
	id := sourceAttr(parent.StableAttr(), st.Kind, name)
	if st.Kind == storage.KindFile {
		id.Gen ^= st.Device<<48 ^ st.Inode // a replaced file is another node
	}
	return parent.enter(ctx, parent.child(ctx, id, name, func() fusefs.InodeEmbedder {
		switch st.Kind {
		case storage.KindDir:
			sub := d.at(path)
			sub.plain = true
			return sub
		case storage.KindLink:
			return &Link{node: node{view: d.view}, find: d.sourceTarget(path)}
		}
		return &SourceFile{
			node: node{view: d.view}, storage: d.storage, file: path,
			object: storage.Token{Device: st.Device, Inode: st.Inode},
		}
	}), out)
}

func sourceAttr(parent fusefs.StableAttr, k storage.Kind, name string) fusefs.StableAttr {
	switch k {
	case storage.KindDir:
		return stableAttr(parent, kindSourceDir, name, syscall.S_IFDIR)
	case storage.KindLink:
		return stableAttr(parent, kindSourceLink, name, syscall.S_IFLNK)
	}
	return stableAttr(parent, kindSourceFile, name, syscall.S_IFREG)
}

func (d *SourceDir) enterSession(ctx context.Context, parent *node, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(parent.StableAttr(), kindSession, name, syscall.S_IFDIR)
	return parent.enter(ctx, parent.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return newSessionDir(d, name)
	}), out)
}

var _ = (fusefs.NodeOpendirHandler)((*SourceDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *SourceDir) OpendirHandle(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if d.isOutdated(ctx) {
		return nil, 0, syscall.ESTALE
	}
	return d.directory.OpendirHandle(ctx, flags)
}

// Numbers of listed items: those of SOURCE, and sessions' directories.
const (
	listedSource = iota
	listedSession
)

func (d *SourceDir) list(ctx context.Context) ([]item, error) {
	found, err := storage.List(d.storage, d.dir)
	if err != nil {
		return nil, err
	}
	taken := make(map[string]bool) // names of real files and links, which win over sessions' directories
	sessions := make(map[string]bool)
	for _, f := range found {
		if f.Kind == storage.KindFile || f.Kind == storage.KindLink && !d.isMoving(f.Name) {
			taken[f.Name] = true
		}
	}
	self := d.StableAttr()
	items := make([]item, 0, len(found))
	for _, f := range found {
		name, ok := d.sessionName(f.Name)
		if d.sessions == nil || !ok || f.Kind != storage.KindFile || taken[name] || sessions[name] {
			continue
		}
		isSession, err := d.isSession(ctx, name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			d.view.Log.Error("cannot tell whether this is a session", "path", d.path()+"/"+f.Name, "err", err)
			continue // one bad file must not make the listing fail
		}
		if isSession {
			sessions[name] = true
			id := stableAttr(self, kindSession, name, syscall.S_IFDIR)
			items = append(items, item{name: name, mode: id.Mode, ino: id.Ino, number: listedSession})
		}
	}
	for _, f := range found {
		if f.Kind == storage.KindOther || layout.Hidden(f.Name) || sessions[f.Name] {
			continue
		}
		id := sourceAttr(self, f.Kind, f.Name)
		items = append(items, item{name: f.Name, mode: id.Mode, ino: id.Ino, number: listedSource})
	}
	sortItems(items)
	return items, nil
}

func (d *SourceDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if it.number == listedSession {
		return d.enterSession(ctx, &d.node, it.name, out)
	}
	return d.lookupIn(ctx, &d.node, it.name, out)
}

// follow returns the path unchanged in sessions/ itself.
func (d *SourceDir) follow(_ context.Context, parts []string) ([]string, error) {
	switch {
	case d.sessions == nil || d.dir != "":
		return nil, layout.ErrLeadsNowhere
	case d.view.Archived():
		return append([]string{"..", layout.Archive}, parts...), nil
	}
	return parts, nil
}

// join puts a name behind a directory's path in a storage, where "" is the root.
func join(dir, name string) string { return path.Join(dir, name) }

// sortItems sorts a listing by name.
func sortItems(items []item) {
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
}
