package listing

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// ByCwd and ByDate are directories of the mount with links to sessions in directories
// (docs/design.md section 5). They are computed from sorted rows without nodes in memory: a cwd may
// have many levels.

const (
	// latestName is the link to the most recently modified session. The name is reserved.
	latestName = "latest"
	// maxCwd bounds a shown working directory, in bytes. Links lead up through all levels, at most
	// half as many, with three bytes each, and a link's target has at most 4,095 bytes.
	maxCwd = 2000
	// maxListedLevels bounds the listing below by-cwd/, as for tree/. Deeper directories exist.
	maxListedLevels = 64
	// maxElement bounds the name of a directory, as Linux does.
	maxElement = 255
)

// TreeEntry is an entry of a tree's directory: a subdirectory or a link to a session.
type TreeEntry struct {
	Name string
	// Dir is the path of a subdirectory in the tree, with a leading slash; "" for a link.
	Dir string
	// Session is the target of a link, and Stat a subdirectory's. Only TreeFind sets them.
	Session *Info
	Stat    storage.Stat

	file *sessionFile // the target of a link; nil for the link latest
}

// dirOf returns the directory of a session's link, if it has one.
func (v KeyTable) dirOf(i *Info) (dir string, ok bool) {
	if i.IsSubagent() {
		return "", false
	}
	if v == ByCwd {
		return cleanCwd(i.CWD)
	}
	start, ok := i.startTime()
	return "/" + start.Format(time.DateOnly), ok
}

// linkName returns the name of a session's link: its start and its display name.
func (v KeyTable) linkName(i *Info) string {
	name := i.DisplayName()
	if i.Parent != "" {
		name += " (fork)"
	}
	start, hasStart := i.startTime()
	if hasStart {
		name = start.Format(linkTimes[v]) + name
	}
	return names.FileName(name)
}

// linkTimes are the forms of starts in names of links: by-date/ has the date as a directory.
var linkTimes = [...]string{
	ByCwd:  "2006-01-02T15-04-",
	ByDate: "15-04-",
}

// startTime returns the session's start in local time.
func (i *Info) startTime() (time.Time, bool) {
	ms, ok := i.Created()
	return time.UnixMilli(ms).Local(), ok
}

// cleanCwd returns the shown directory of a header's cwd, C:\\a of Windows as /C:/a. isShown is false if
// cwd is no absolute path that a directory can have, or too long.
func cleanCwd(cwd string) (dir string, isShown bool) {
	dir, _, isAbs := names.AbsPath(cwd)
	if !isAbs || strings.IndexByte(cwd, 0) >= 0 || len(dir) > maxCwd {
		return "", false
	}
	isTooLong := slices.ContainsFunc(strings.Split(dir, "/"), func(name string) bool {
		return len(name) > maxElement
	})
	return dir, !isTooLong
}

// keyOfDir returns the key of a clean path, "" for the root.
func keyOfDir(dir string) string {
	if dir == "/" {
		return ""
	}
	return strings.ReplaceAll(dir, "/", "\x00")
}

// distinguish adds a hash of the file's path to each name of a link that something else in its directory has,
// too: another link, the link latest, or a subdirectory.
func (x rows) distinguish() {
	var shared []int
	for i, r := range x {
		if r.name == "" { // a row of refreshTree
			continue
		}
		isDirectory := x.has(r.key + "\x00" + r.name)
		isLink := r.name == latestName || x.hasName(i-1, r) || x.hasName(i+1, r)
		if isDirectory || isLink {
			shared = append(shared, i)
		}
	}
	for _, i := range shared {
		x[i].name = names.WithHash(x[i].name, x[i].file.name)
	}
	if len(shared) > 0 {
		slices.SortFunc(x, keyRow.compare)
	}
}

// has reports whether a session is in the directory with a key, or below it.
func (x rows) has(key string) bool {
	found := x.fromKey(key)
	if len(found) == 0 {
		return false
	}
	first := found[0].key
	return first == key || strings.HasPrefix(first, key+"\x00")
}

// children calls f with the name of each subdirectory of the directory with a key, in order. It searches for
// the next one each time, as a subdirectory may have many rows.
func (x rows) children(key string, f func(child string)) {
	prefix := key + "\x00"
	at := prefix
	for {
		found := x.fromKey(at)
		if len(found) == 0 || !strings.HasPrefix(found[0].key, prefix) {
			return
		}
		child, _, _ := strings.Cut(found[0].key[len(prefix):], "\x00")
		f(child)
		at = prefix + child + "\x01" // after everything below the child
	}
}

// dirName returns the listed name of a subdirectory: its own, so that a path from the shell works,
// except for the name of the link.
func dirName(child string) string {
	if child == latestName {
		return names.EscapeFirst(child)
	}
	return child
}

// hasName reports whether the row at an index, if there is one, is a link of r's name in r's directory.
func (x rows) hasName(at int, r keyRow) bool {
	if at < 0 || at >= len(x) {
		return false
	}
	return x[at].key == r.key && x[at].name == r.name
}

// child returns the path of the subdirectory with a name in the directory with a key. In the root the name may
// be a path of Windows. ok is false if there is none.
func (x rows) child(key, name string) (child string, ok bool) {
	clean, isWindows, _ := names.AbsPath(name)
	if isWindows && key == "" && x.has(keyOfDir(clean)) {
		return clean[1:], true
	}
	if x.has(key + "\x00" + name) {
		return name, true
	}
	isEscaped := name == dirName(latestName) // of a directory with the link's name
	return latestName, isEscaped && x.has(key+"\x00"+latestName)
}

// list returns the entries of a directory, unsorted, each name once. It leaves out subdirectories that are too
// deep or could control a terminal; these can be looked up.
func (x rows) list(dir string) []TreeEntry {
	key := keyOfDir(dir)
	var entries []TreeEntry
	used := map[string]bool{}
	add := func(e TreeEntry) {
		if !used[e.Name] {
			used[e.Name] = true
			entries = append(entries, e)
		}
	}
	own := x.own(key)
	if len(own) > 0 {
		add(TreeEntry{Name: latestName})
	}
	if strings.Count(key, "\x00") < maxListedLevels {
		x.children(key, func(child string) {
			mayControl := strings.ContainsFunc(child, names.IsControl)
			if !mayControl {
				add(TreeEntry{Name: dirName(child), Dir: path.Join(dir, child)})
			}
		})
	}
	for i := range own {
		add(TreeEntry{Name: own[i].name, file: own[i].file})
	}
	return entries
}

// find returns the entry name of a directory, without Session and Stat.
func (x rows) find(dir, name string) (TreeEntry, bool) {
	key := keyOfDir(dir)
	own := x.own(key)
	if name == latestName && len(own) > 0 {
		return TreeEntry{Name: name}, true
	}
	child, isDir := x.child(key, name)
	if isDir {
		return TreeEntry{Name: name, Dir: path.Join(dir, child)}, true
	}
	at, isLink := slices.BinarySearchFunc(own, name, func(r keyRow, name string) int {
		return strings.Compare(r.name, name)
	})
	if !isLink {
		return TreeEntry{}, false
	}
	return TreeEntry{Name: name, file: own[at].file}, true
}

// TreeList returns the entries of a directory of a tree, unsorted.
func (l *Listing) TreeList(ctx context.Context, v KeyTable, dir string) ([]TreeEntry, error) {
	err := storage.LockUntil(ctx, &l.mu)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	key := keyOfDir(dir)
	all, err := l.treeRows(ctx, v, key, false)
	if err != nil || l.isBrief {
		return all.list(dir), err
	}
	err = l.refreshFiles(ctx, all.own(key).files()) // their titles
	if err != nil {
		return nil, err
	}
	return l.view(v).list(dir), nil
}

// TreeStat returns the Stat of a tree's directory, with the times of the last addition or removal
// of a session anywhere. The error wraps ErrNotFound if no session is in dir or below.
func (l *Listing) TreeStat(ctx context.Context, v KeyTable, dir string) (storage.Stat, error) {
	if dir == "/" {
		return l.Stat(ctx)
	}
	err := storage.LockUntil(ctx, &l.mu)
	if err != nil {
		return storage.Stat{}, err
	}
	defer l.mu.Unlock()
	all, err := l.treeRows(ctx, v, keyOfDir(dir), false)
	if err != nil {
		return storage.Stat{}, err
	}
	if !all.has(keyOfDir(dir)) {
		return storage.Stat{}, fmt.Errorf("%w: a session in %q", sessioncore.ErrNotFound, dir)
	}
	return l.newest, nil
}

// TreeFind returns the entry name of a tree's directory, or an error that wraps ErrNotFound. If
// known is set, it uses the last scan, but the link latest is current.
func (l *Listing) TreeFind(ctx context.Context, v KeyTable, dir, name string, known bool) (TreeEntry, error) {
	known = known && name != latestName
	if l.isBrief {
		return l.findBrief(ctx, v, dir, name, known)
	}
	err := l.lock(ctx, known)
	if err != nil {
		return TreeEntry{}, err
	}
	defer l.mu.Unlock()
	e, ok := l.view(v).find(dir, name)
	if !ok && !known {
		err := l.refresh(ctx, everyFile)
		if err != nil {
			return TreeEntry{}, err
		}
		e, ok = l.view(v).find(dir, name)
	}
	if !ok {
		return TreeEntry{}, errNotInTree(dir, name)
	}
	e.Stat = l.newest
	if e.Dir != "" {
		return e, nil
	}
	find := l.findRefreshed
	if known {
		find = l.findKnown
	}
	found, err := find(ctx, l.linked(v, dir, name))
	if err != nil {
		return e, err
	}
	e.Session = found[0]
	return e, nil
}

// errNotInTree is the error of a name that is not in a directory of a tree.
func errNotInTree(dir, name string) error {
	return fmt.Errorf("%w: %q in %q", sessioncore.ErrNotFound, name, dir)
}

// linked returns the session of a link in a directory of a tree, as wanted. Its functions must be called with
// l.mu held.
func (l *Listing) linked(v KeyTable, dir, name string) wanted {
	if name == latestName {
		return l.linkedLatest(v, dir)
	}
	linkedFile := func() *sessionFile {
		e, _ := l.view(v).find(dir, name)
		return e.file
	}
	return wanted{
		find: func() ([]*sessionFile, bool) {
			file := linkedFile()
			if file == nil {
				return nil, true
			}
			return []*sessionFile{file}, true
		},
		fits: func(i *Info) bool { // the name may have changed by now
			return linkedFile() == i.file
		},
	}
}

// linkedLatest is linked for the link latest: any session in the directory fits, and find returns the
// latest modified one first.
func (l *Listing) linkedLatest(v KeyTable, dir string) wanted {
	return wanted{
		find: func() ([]*sessionFile, bool) {
			return l.view(v).own(keyOfDir(dir)).files(), true
		},
		fits: func(i *Info) bool {
			now, isInTree := v.dirOf(i)
			return isInTree && now == dir
		},
	}
}

// Scope returns the directory with the latest session of a working directory, by file names, which
// begin with the time, or "". Sessions without a directory and the file except do not count.
func (l *Listing) Scope(ctx context.Context, cwd, except string) (scope string, err error) {
	dir, isShown := cleanCwd(cwd)
	if !isShown {
		return "", nil
	}
	err = l.lock(ctx, false)
	if unreachable(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	latest := ""
	for _, f := range l.view(ByCwd).own(keyOfDir(dir)).files() {
		if f.dir.name != "" && f.base() > latest && f.name != except {
			latest = f.base()
			scope = f.dir.name
		}
	}
	return scope, nil
}
