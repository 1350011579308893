package listing

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Tree is a directory of the mount with links to sessions in directories (docs/design.md section
// 5). It is computed from one sorted list without nodes in memory: a cwd may have many levels.
type Tree int

const (
	ByCwd  Tree = iota // by-cwd/ mirrors the working directories
	ByDate             // by-date/ has a directory for each day on which a session began
	trees
)

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

// treeKeys has all sessions of a tree, sorted by directory.
type treeKeys []treeKey

// treeKey is a session with its directory in key, in which each / is a NUL, so that a directory's
// own sessions sort before its subdirectories.
type treeKey struct {
	key  string
	name string // of the link
	file *sessionFile
}

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
func (t Tree) dirOf(i *Info) (dir string, ok bool) {
	if i.IsSubagent() {
		return "", false
	}
	if t == ByCwd {
		return cleanCwd(i.CWD)
	}
	start, ok := i.startTime()
	return "/" + start.Format(time.DateOnly), ok
}

// linkName returns the name of a session's link: its start and its display name.
func (t Tree) linkName(i *Info) string {
	name := i.DisplayName()
	if i.Parent != "" {
		name += " (fork)"
	}
	if start, ok := i.startTime(); ok {
		name = start.Format([...]string{ByCwd: "2006-01-02T15-04-", ByDate: "15-04-"}[t]) + name
	}
	return names.FileName(name)
}

// startTime returns the session's start in local time.
func (i *Info) startTime() (time.Time, bool) {
	ms, ok := i.Created()
	return time.UnixMilli(ms).Local(), ok
}

// linkMoved reports whether a session's link has another name or place than before.
func linkMoved(old, i *Info) bool {
	return old.CWD != i.CWD || ByCwd.linkName(old) != ByCwd.linkName(i)
}

// cleanCwd returns the shown directory of a header's cwd, C:\\a of Windows as /C:/a; ok is false if
// cwd is no absolute path that a directory can have, or too long.
func cleanCwd(cwd string) (dir string, ok bool) {
	dir, _, ok = names.AbsPath(cwd)
	if !ok || strings.IndexByte(cwd, 0) >= 0 {
		return "", false
	}
	tooLong := func(name string) bool { return len(name) > maxElement }
	return dir, len(dir) <= maxCwd && !slices.ContainsFunc(strings.Split(dir, "/"), tooLong)
}

// keyOfDir returns the key of a clean path, "" for the root.
func keyOfDir(dir string) string {
	if dir == "/" {
		return ""
	}
	return strings.ReplaceAll(dir, "/", "\x00")
}

// compare orders by directory, then by the names of links.
func (k treeKey) compare(other treeKey) int {
	if c := cmp.Or(strings.Compare(k.key, other.key), strings.Compare(k.name, other.name)); c != 0 {
		return c
	}
	return strings.Compare(k.file.name(), other.file.name())
}

// sort sorts the keys, and adds a hash of the file's path to names that repeat.
func (x treeKeys) sort() {
	slices.SortFunc(x, treeKey.compare)
	var shared []int
	for i, k := range x {
		same := func(at int) bool { return at >= 0 && at < len(x) && x[at].key == k.key && x[at].name == k.name }
		if same(i-1) || same(i+1) || k.name == latestName || x.has(k.key+"\x00"+k.name) {
			shared = append(shared, i)
		}
	}
	for _, i := range shared {
		x[i].name = withHash(x[i].name, x[i].file.name())
	}
	if len(shared) > 0 {
		slices.SortFunc(x, treeKey.compare)
	}
}

// from returns the keys >= key.
func (x treeKeys) from(key string) treeKeys {
	return x[sort.Search(len(x), func(i int) bool { return x[i].key >= key }):]
}

// own returns the sessions in exactly the directory of key.
func (x treeKeys) own(key string) treeKeys {
	keys := x.from(key)
	return keys[:sort.Search(len(keys), func(i int) bool { return keys[i].key != key })]
}

// files returns the files of the sessions in exactly this directory.
func (x treeKeys) files(dir string) (files []*sessionFile) {
	for _, k := range x.own(keyOfDir(dir)) {
		files = append(files, k.file)
	}
	return files
}

// has reports whether a session is in the directory or below it.
func (x treeKeys) has(key string) bool {
	keys := x.from(key)
	return len(keys) > 0 && (keys[0].key == key || strings.HasPrefix(keys[0].key, key+"\x00"))
}

// children calls f with the name of each subdirectory, in order.
func (x treeKeys) children(key string, f func(child string)) {
	prefix := key + "\x00"
	for at := prefix; ; {
		keys := x.from(at)
		if len(keys) == 0 || !strings.HasPrefix(keys[0].key, prefix) {
			return
		}
		child, _, _ := strings.Cut(keys[0].key[len(prefix):], "\x00")
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

// child returns the subdirectory of a name in a tree. In the root that may be a path of Windows.
func (x treeKeys) child(key, name string) (child string, ok bool) {
	if clean, windows, _ := names.AbsPath(name); windows && key == "" && x.has(keyOfDir(clean)) {
		return clean[1:], true
	}
	if x.has(key + "\x00" + name) {
		return name, true
	}
	return latestName, name == dirName(latestName) && x.has(key+"\x00"+latestName)
}

// list returns the entries of a directory, unsorted.
func (x treeKeys) list(dir string) []TreeEntry {
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
			if !strings.ContainsFunc(child, names.IsControl) { // a terminal might obey it; it can be looked up
				add(TreeEntry{Name: dirName(child), Dir: path.Join(dir, child)})
			}
		})
	}
	for i := range own {
		add(TreeEntry{Name: own[i].name, file: own[i].file})
	}
	return entries
}

// withHash adds a hash of the path to a base name that several paths have.
func withHash(base, path string) string { return cutBase(base) + "~" + names.Hash([]byte(path)) }

// cutBase shortens a file's name so that a hash can follow.
func cutBase(base string) string { return base[:min(len(base), names.MaxName)] }

// cutHash returns the name that withHash extended, if it did.
func cutHash(name string) (base string, ok bool) {
	at := len(name) - names.HashLength - 1
	if at < 0 || name[at] != '~' {
		return name, false
	}
	return name[:at], true
}

// find returns the entry name of a directory, without Session and Stat.
func (x treeKeys) find(dir, name string) (TreeEntry, bool) {
	key := keyOfDir(dir)
	own := x.own(key)
	if name == latestName && len(own) > 0 {
		return TreeEntry{Name: name}, true
	}
	if child, ok := x.child(key, name); ok {
		return TreeEntry{Name: name, Dir: path.Join(dir, child)}, true
	}
	at := sort.Search(len(own), func(i int) bool { return own[i].name >= name })
	if at < len(own) && own[at].name == name {
		return TreeEntry{Name: name, file: own[at].file}, true
	}
	return TreeEntry{}, false
}

// tree returns the keys of a tree. Callers must hold l.mu.
func (l *Listing) tree(t Tree) treeKeys {
	k := l.collectKeys()
	if k.trees[t] != nil {
		return k.trees[t]
	}
	x := treeKeys{}
	for f := range l.listedFiles {
		if dir, ok := t.dirOf(f.info); ok {
			x = append(x, treeKey{keyOfDir(dir), t.linkName(f.info), f})
		}
	}
	x.sort()
	k.trees[t] = x
	return x
}

// TreeList returns the entries of a directory of a tree, unsorted.
func (l *Listing) TreeList(ctx context.Context, t Tree, dir string) ([]TreeEntry, error) {
	if err := l.lock(ctx, false); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if err := l.refreshFiles(ctx, l.tree(t).files(dir)); err != nil { // their titles
		return nil, err
	}
	return l.tree(t).list(dir), nil
}

// TreeStat returns the Stat of a tree's directory, with the times of the last addition or removal
// of a session anywhere. The error wraps ErrNotFound if no session is in dir or below.
func (l *Listing) TreeStat(ctx context.Context, t Tree, dir string) (storage.Stat, error) {
	if dir == "/" {
		return l.Stat(ctx)
	}
	if err := l.lock(ctx, false); err != nil {
		return storage.Stat{}, err
	}
	defer l.mu.Unlock()
	if !l.tree(t).has(keyOfDir(dir)) {
		return storage.Stat{}, fmt.Errorf("%w: a session in %q", sessioncore.ErrNotFound, dir)
	}
	return l.newest, nil
}

// TreeFind returns the entry name of a tree's directory, or an error that wraps ErrNotFound. If
// known is set, it uses the last scan, but the link latest is current.
func (l *Listing) TreeFind(ctx context.Context, t Tree, dir, name string, known bool) (TreeEntry, error) {
	known = known && name != latestName
	if err := l.lock(ctx, known); err != nil {
		return TreeEntry{}, err
	}
	defer l.mu.Unlock()
	e, ok := l.tree(t).find(dir, name)
	if !ok && !known {
		if err := l.refresh(ctx, true); err != nil {
			return TreeEntry{}, err
		}
		e, ok = l.tree(t).find(dir, name)
	}
	if !ok {
		return TreeEntry{}, fmt.Errorf("%w: %q in %q", sessioncore.ErrNotFound, name, dir)
	}
	var err error
	if e.Stat = l.newest; e.Dir == "" {
		e.Session, err = l.findLocked(ctx, known, l.treeLink(t, dir, name))
	}
	return e, err
}

// treeLink returns a finder for the session of a link.
func (l *Listing) treeLink(t Tree, dir, name string) finder {
	return func() ([]*sessionFile, bool, func(*Info) bool) {
		if name == latestName {
			return l.tree(t).files(dir), true, func(i *Info) bool {
				now, ok := t.dirOf(i)
				return ok && now == dir
			}
		}
		var files []*sessionFile
		if e, ok := l.tree(t).find(dir, name); ok && e.file != nil {
			files = append(files, e.file)
		}
		return files, true, func(i *Info) bool { // its name may have changed by now
			e, ok := l.tree(t).find(dir, name)
			return ok && e.file != nil && e.file == i.file
		}
	}
}

// Scope returns the directory with the latest session of a working directory, by file names, which
// begin with the time, or "". Sessions without a directory and the file except do not count.
func (l *Listing) Scope(ctx context.Context, cwd, except string) (scope string, err error) {
	dir, ok := cleanCwd(cwd)
	if !ok {
		return "", nil
	}
	if err := l.lock(ctx, false); unreachable(err) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	latest := ""
	for _, f := range l.tree(ByCwd).files(dir) {
		if f.dir.name != "" && f.base > latest && f.name() != except {
			latest, scope = f.base, f.dir.name
		}
	}
	return scope, nil
}
