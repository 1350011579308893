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
	storage storage.Files
	dir     string // path in storage, "" for the root
	// sessions are those of storage; nil if all files are shown as they are.
	sessions *sessioncore.Store
	// plain says that no session file of its name was beside it when it was looked up.
	plain bool
	// made are names of what is made here, and hide what is in SOURCE.
	made fixedNames[*View]
}

// SourceName is the directory that shows the root of a storage. sessions is nil where it holds no sessions.
func SourceName(name string, files storage.Files, sessions *sessioncore.Store) Name {
	return Name{name, syscall.S_IFDIR, func(view *View) fusefs.InodeEmbedder { return newSourceDir(view, files, sessions) }, nil}
}

func newSourceDir(view *View, storage storage.Files, sessions *sessioncore.Store) *SourceDir {
	return &SourceDir{directory: newDirectory(view), storage: storage, sessions: sessions}
}

// ArchiveName is archive/: SOURCE/archive/sessions as it is, with a directory beside each compressed session, and
// index.jsonl. Nothing in it can be changed.
func ArchiveName(files storage.Files) Name {
	return Name{layout.Archive, syscall.S_IFDIR, func(view *View) fusefs.InodeEmbedder {
		d := newSourceDir(view.Archive, files, view.Archive.Sessions)
		d.made = fixedNames[*View]{IndexName}
		return d
	}, nil}
}

// at returns another directory of the same storage.
func (d *SourceDir) at(dir string) *SourceDir {
	return &SourceDir{directory: newDirectory(d.view), storage: d.storage, dir: dir, sessions: d.sessions}
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

// find finds a file, link or directory of SOURCE, or the directory that shows a session.
func (d *SourceDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	name := it.name
	if d.made.has(name) {
		return d.made.find(ctx, d.view, it)
	}
	if it.number == listedSession {
		return d.sessionChild(name), nil
	}
	if layout.Hidden(name) {
		return child{}, syscall.ENOENT
	}
	st, err := d.storage.Stat(join(d.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		st.Kind = storage.KindOther
	} else if err != nil {
		return child{}, err
	}
	if st.Kind == storage.KindFile || st.Kind == storage.KindLink && !d.isMoving(name) {
		return d.sourceChild(name, st), nil
	}
	isSession, err := d.isSession(ctx, name)
	switch {
	case err != nil:
		return child{}, err
	case isSession:
		return d.sessionChild(name), nil
	case st.Kind == storage.KindDir, st.Kind == storage.KindLink:
		return d.sourceChild(name, st), nil
	case sessionFiles.has(name) && d.isOutdated(ctx):
		return child{}, errReplaced
	}
	return child{}, syscall.ENOENT
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

// sourceChild is a file, link or directory of SOURCE.
func (d *SourceDir) sourceChild(name string, st storage.Stat) child {
	path := join(d.dir, name)
	c := child{mode: sourceMode(st.Kind)}
	switch st.Kind {
	case storage.KindDir:
		c.make = func() fusefs.InodeEmbedder {
			sub := d.at(path)
			sub.plain = true
			return sub
		}
	case storage.KindLink:
		return d.link(nil, d.sourceTarget(path))
	default:
		c.content = st.Device<<48 ^ st.Inode // a replaced file is another node
		c.make = func() fusefs.InodeEmbedder {
			return &SourceFile{
				node: node{view: d.view}, storage: d.storage, file: path,
				object: storage.Token{Device: st.Device, Inode: st.Inode},
			}
		}
	}
	return c
}

// sourceMode returns the file type bits of what is in SOURCE.
func sourceMode(k storage.Kind) uint32 {
	switch k {
	case storage.KindDir:
		return syscall.S_IFDIR
	case storage.KindLink:
		return syscall.S_IFLNK
	}
	return syscall.S_IFREG
}

func (d *SourceDir) sessionChild(name string) child {
	return child{content: other, mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder { return newSessionDir(d, name) }}
}

var _ = (fusefs.NodeOpendirHandler)((*SourceDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *SourceDir) OpendirHandle(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if d.isOutdated(ctx) {
		return nil, 0, syscall.ESTALE
	}
	return d.directory.OpendirHandle(ctx, flags)
}

// listedSession is the number of sessions' directories in a list.
const listedSession = 1

func (d *SourceDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
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
	items := d.made.list(ctx, d.view, &d.node)
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
			d.view.Log.Error("cannot tell whether this is a session", "path", d.path(f.Name), "err", err)
			continue // one bad file must not make the listing fail
		}
		if isSession {
			sessions[name] = true
			it := d.newItem(name, syscall.S_IFDIR)
			it.number = listedSession
			items = append(items, it)
		}
	}
	for _, f := range found {
		if f.Kind == storage.KindOther || layout.Hidden(f.Name) || sessions[f.Name] || d.made.has(f.Name) {
			continue
		}
		items = append(items, d.newItem(f.Name, sourceMode(f.Kind)))
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return items, nil
}

// join puts a name behind a directory's path in a storage, where "" is the root.
func join(dir, name string) string { return path.Join(dir, name) }
