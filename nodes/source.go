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

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// SourceDir is a directory of SOURCE: sessions/ and the directories below it, artifacts/, blobs/
// and terminal-sessions/. Each session file has a directory of its name beside it, unless sessions
// is nil (docs/design.md section 1).
type SourceDir struct {
	Directory
	storage storage.Files
	dir     string // path in storage, "" for the root
	// sessions are the sessions of storage; nil if all files are shown unchanged.
	sessions *sessioncore.Store
	// plain reports that no session file of its name was beside it at its lookup.
	plain bool
	// ownNames are generated names, which hide those in SOURCE.
	ownNames fixedNames[*Directory]
}

// SourceName is the directory of a storage's root. sessions is nil if it holds no sessions; then it
// is not listed while it is empty.
func SourceName(name string, files storage.Files, sessions *sessioncore.Store) Name {
	n := Name{
		Name: name,
		Kind: storage.KindDir,
		Make: func(d *Directory) Node {
			return newSourceDir(d.below(name), files, sessions)
		},
	}
	if sessions == nil {
		n.Is = unlessEmpty(files)
	}
	return n
}

// unlessEmpty lists the name of a directory of SOURCE only while the directory shows something. It reads the
// directory up to the first name that is shown.
func unlessEmpty(files storage.Files) func(*Directory, context.Context) Presence {
	return func(*Directory, context.Context) Presence {
		isEmpty := true
		err := files.List("", nil, func(item storage.Item) bool {
			isEmpty = item.Kind == storage.KindOther || layout.Hidden(item.Name)
			return isEmpty
		})
		return hiddenIf(isEmpty, err)
	}
}

// newSourceDir returns the root of a storage, at base as its place in the mount.
func newSourceDir(base Directory, storage storage.Files, sessions *sessioncore.Store) *SourceDir {
	return &SourceDir{Directory: base, storage: storage, sessions: sessions}
}

// ArchiveName is archive/: SOURCE/archive/sessions with a directory beside each compressed session,
// and index.jsonl. Nothing in it can be changed. It is not listed while it is
// empty.
func ArchiveName(files storage.Files) Name {
	return Name{
		Name: layout.Archive,
		Kind: storage.KindDir,
		Is:   unlessEmpty(files),
		Make: func(d *Directory) Node {
			archive := newSourceDir(d.below(layout.Archive).inView(d.view.Archive), files, d.view.Archive.Sessions)
			archive.ownNames = fixedNames[*Directory]{IndexName}
			return archive
		},
	}
}

// mountedAt returns another directory of the same storage, dir, at base as its place in the mount.
func (d *SourceDir) mountedAt(base Directory, dir string) *SourceDir {
	return &SourceDir{
		Directory: base,
		storage:   d.storage,
		dir:       dir,
		sessions:  d.sessions,
	}
}

// Stat returns the attributes of the directory of SOURCE.
func (d *SourceDir) Stat(context.Context) (Attr, error) {
	st, err := d.storage.Stat(d.dir)
	if err == nil && st.Kind != storage.KindDir {
		err = fmt.Errorf("%w: it is no directory any more", fs.ErrNotExist)
	}
	return d.view.dirAttr(st), err
}

// isOutdated reports whether the directory was found as a plain one, and a session has its name now, for
// example since the file was restored after the directory beside it.
func (d *SourceDir) isOutdated(ctx context.Context) bool {
	if !d.plain {
		return false
	}
	dir, name := path.Split(d.dir)
	above := SourceDir{dir: strings.TrimSuffix(dir, "/"), sessions: d.sessions}
	isSession, _ := above.isSession(ctx, name)
	return isSession
}

// Find finds a name, in this order: one of the mount's own; a file or link of SOURCE; the directory that shows
// a session; a directory of SOURCE. So a real file wins over a session's directory, and that over a real one.
func (d *SourceDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	name := it.Name
	if d.ownNames.has(name) {
		return d.ownNames.find(ctx, &d.Directory, it)
	}
	if it.number == listedSession {
		return d.sessionChild(name), nil
	}
	if layout.Hidden(name) {
		return Child{}, syscall.ENOENT
	}
	st, err := d.storage.Stat(path.Join(d.dir, name))
	isMissing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isMissing {
		return Child{}, err
	}
	kind := st.Kind
	if isMissing {
		kind = storage.KindOther // only a session can have the name
	}
	if kind == storage.KindFile || kind == storage.KindLink {
		return d.sourceChild(name, st), nil
	}
	isSession, err := d.isSession(ctx, name)
	switch {
	case err != nil:
		return Child{}, err
	case isSession:
		return d.sessionChild(name), nil
	case kind == storage.KindDir:
		return d.sourceChild(name, st), nil
	case sessionFiles.has(name) && d.isOutdated(ctx):
		return Child{}, errReplaced // the caller's lookup of d finds the session's directory
	}
	return Child{}, syscall.ENOENT
}

// sessionName returns the name of the directory that shows a session file.
func (d *SourceDir) sessionName(file string) (name string, ok bool) {
	if d.view.Archived() {
		file = strings.TrimSuffix(file, layout.ArchiveSuffix)
	}
	return layout.SessionName(file)
}

// isSession reports whether there is a session file for a directory of that name. A file that is no session, or
// that may not be read, is none and no error.
func (d *SourceDir) isSession(ctx context.Context, name string) (bool, error) {
	if d.sessions == nil || name == "" || name[0] == '.' {
		return false, nil
	}
	file := name + layout.SessionSuffix
	if len(file) > syscall.NAME_MAX { // a file system has no such name, and would return an error
		return false, nil
	}
	_, err := d.sessions.Probe(ctx, path.Join(d.dir, file))
	if err == nil {
		return true, nil
	}
	errno := Errno(err)
	if errno == syscall.ENOENT || errno == syscall.EACCES {
		return false, nil
	}
	return false, err
}

// sourceChild returns the child of a file, link or directory of SOURCE. st is its state.
func (d *SourceDir) sourceChild(name string, st storage.Stat) Child {
	file := path.Join(d.dir, name)
	switch st.Kind {
	case storage.KindDir:
		makeNode := func() Node {
			sub := d.mountedAt(d.below(name), file)
			sub.plain = true
			return sub
		}
		return Child{Kind: storage.KindDir, Make: makeNode}
	case storage.KindLink:
		find := func(context.Context) (target, error) { // it is shown and never followed
			st, err := d.storage.Stat(file)
			return target{path: st.Link, st: st}, err
		}
		return d.link(find, Changing)
	}
	makeNode := func() Node {
		return &SourceFile{
			node:    d.file(),
			storage: d.storage,
			file:    file,
			object:  storage.Token{Device: st.Device, Inode: st.Inode},
		}
	}
	return Child{
		Kind:    sourceKind(st.Kind),
		Content: st.Device<<48 ^ st.Inode, // a replaced file is another node
		Make:    makeNode,
	}
}

// sourceKind returns the kind of node that shows a file of SOURCE.
func sourceKind(k storage.Kind) storage.Kind {
	if k == storage.KindDir || k == storage.KindLink {
		return k
	}
	return storage.KindFile
}

// sessionChild returns the child that shows a session.
func (d *SourceDir) sessionChild(name string) Child {
	return Child{
		Content: replaced,
		Kind:    storage.KindDir,
		Make:    func() Node { return newSessionDir(d, name) },
	}
}

// listedSession is the number of sessions' directories in a list.
const listedSession = 1

// List lists the names that Find finds: the mount's own, a directory for each session, and the names of SOURCE.
func (d *SourceDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	found, err := storage.List(d.storage, d.dir)
	if err != nil {
		return nil, err
	}
	isFile := make(map[string]bool) // names of files and links, which win over sessions' directories
	for _, f := range found {
		isFile[f.Name] = f.Kind == storage.KindFile || f.Kind == storage.KindLink
	}
	sessions, err := d.sessionsIn(ctx, found, isFile)
	if err != nil {
		return nil, err
	}
	items := d.ownNames.list(ctx, &d.Directory)
	isSession := make(map[string]bool, len(sessions))
	for _, name := range sessions {
		isSession[name] = true
		items = append(items, Item{Name: name, Kind: storage.KindDir, number: listedSession})
	}
	for _, f := range found {
		isOther := isSession[f.Name] || d.ownNames.has(f.Name) // another node has the name
		if isOther || f.Kind == storage.KindOther || layout.Hidden(f.Name) {
			continue
		}
		isBesideFile := isFile[f.Name+sessioncore.FileEnding]
		if f.Kind == storage.KindDir && isBesideFile && d.isGone(f.Name) {
			continue
		}
		items = append(items, Item{Name: f.Name, Kind: sourceKind(f.Kind)})
	}
	slices.SortFunc(items, func(a, b Item) int {
		return strings.Compare(a.Name, b.Name)
	})
	return items, nil
}

// sessionsIn returns the names of the directories that show sessions, for the files in a listing. isFile has
// the names of real files and links, which no such directory has. A file that cannot be read is left out, and
// logged; an error is always the one of ctx.
func (d *SourceDir) sessionsIn(ctx context.Context, found []storage.Item, isFile map[string]bool) (sessions []string, err error) {
	if d.sessions == nil {
		return nil, nil
	}
	isKnown := make(map[string]bool) // X.jsonl and X.jsonl.gz of an archive have one directory
	for _, f := range found {
		name, hasSuffix := d.sessionName(f.Name)
		if !hasSuffix || f.Kind != storage.KindFile {
			continue
		}
		if isFile[name] || isKnown[name] {
			continue
		}
		isSession, err := d.isSession(ctx, name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // one bad file must not make the listing fail
			d.view.Log.Error("cannot tell whether this is a session", "path", d.nameIn(f.Name), "err", err)
		}
		if isSession {
			isKnown[name] = true
			sessions = append(sessions, name)
		}
	}
	return sessions, nil
}

// isGone reports whether a listed directory is not found. An agent's reader lists a directory beside each
// session's file without reading the file, so there may be none.
func (d *SourceDir) isGone(name string) bool {
	_, err := d.storage.Stat(path.Join(d.dir, name))
	return storage.IsMissing(err)
}

// SourceFile is a file of SOURCE, byte for byte: a raw session file, an artifact, a blob, a
// breadcrumb. It is read-only. Like EntryFile it stands for one file: a replacement is another
// node.
type SourceFile struct {
	node
	storage storage.Files
	file    string        // path in storage
	object  storage.Token // device and inode only
}

// stat stats the file. The error wraps errReplaced if another file has its name now, and fs.ErrNotExist if a
// directory or a link has it.
func (f *SourceFile) stat() (storage.Stat, error) {
	st, err := f.storage.Stat(f.file)
	switch {
	case err != nil:
		return st, err
	case st.Kind != storage.KindFile:
		return st, fmt.Errorf("%w: it is no file any more", fs.ErrNotExist)
	case !st.SameObject(f.object):
		return st, errReplaced
	}
	return st, nil
}

func (f *SourceFile) Stat(context.Context) (Attr, error) {
	st, err := f.stat()
	return sourceAttr(st), err
}

// sourceAttr returns the attributes of a file of SOURCE, which the mount does not let anybody write.
func sourceAttr(st storage.Stat) Attr {
	a := fileAttr(st, st.Size)
	a.Mode = st.Mode &^ writeBits // execute bits are kept
	return a
}

// Open pins the file, so that reads see it also after it is replaced. The error is errReplaced if another file
// has its name now. An open that takes long, as of a fifo, ends with ctx.
func (f *SourceFile) Open(ctx context.Context, _ int) (Handle, error) {
	open := func() (storage.Object, error) {
		return f.storage.Open(f.file)
	}
	closeLate := func(o storage.Object) {
		_ = o.Close()
	}
	obj, err := storage.Await(ctx, open, closeLate)
	if err != nil {
		return nil, err
	}
	st, err := obj.Stat()
	if err == nil && !st.SameObject(f.object) {
		err = errReplaced
	}
	if err != nil {
		_ = obj.Close()
		return nil, err
	}
	return &SourceHandle{file: f, obj: obj, Token: st.Token}, nil
}

// SourceHandle is an open file of SOURCE.
type SourceHandle struct {
	file  *SourceFile
	obj   storage.Object
	Token storage.Token // identifies the content at the open
}

// Stat returns the attributes of the open file, also after it is replaced.
func (h *SourceHandle) Stat(ctx context.Context) (Attr, error) {
	st, err := h.obj.Stat()
	if err == nil {
		return sourceAttr(st), nil
	}
	return h.file.Stat(ctx)
}

func (h *SourceHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return h.obj.ReadAt(p, off)
}

// Descriptor returns the descriptor of the file, if it is an open file of this process.
func (h *SourceHandle) Descriptor() (fd uintptr, ok bool) {
	file, ok := h.obj.(storage.DescriptorObject)
	if !ok {
		return 0, false
	}
	return file.Fd(), true
}

func (h *SourceHandle) Close() { _ = h.obj.Close() }
