package listing

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// by-cwd/ mirrors the working directories of the sessions (docs/design.md section 5). It is computed from one sorted
// list and has no tree in memory: a hostile cwd may have thousands of levels.

const (
	// latestName is the link to the most recently modified session. The name is reserved.
	latestName = "latest"
	// maxCwd bounds a working directory that is shown, in bytes. Links lead up through all levels, at most half as many, three
	// bytes each, and a link's target has at most 4,095 bytes.
	maxCwd = 2000
	// maxListedLevels bounds what is listed below by-cwd/, as for tree/. Deeper directories can be looked up.
	maxListedLevels = 64
	// maxElement is the longest name of a directory on Linux.
	maxElement = 255
)

// cwdKeys has all sessions, sorted by working directory.
type cwdKeys []cwdKey

// cwdKey is a session with its working directory in key, where each / is a NUL. So a directory's own sessions sort
// first, followed by one subdirectory after the other.
type cwdKey struct {
	key  string
	base string
	file *sessionFile
}

// CwdEntry is an entry of a directory in by-cwd/: a subdirectory or a link to a session.
type CwdEntry struct {
	Name string
	// Dir is the working directory that a subdirectory stands for, an absolute path; "" for a link.
	Dir string
	// Session is the target of a link, and Stat is that of a subdirectory. Only CwdFind sets them.
	Session *Info
	Stat    storage.Stat

	file *sessionFile // the target of a link; nil for the link latest
}

// cleanCwd returns the directory that a header's cwd is shown as; ok is false if cwd is no absolute path that a directory can
// have, or is too long.
func cleanCwd(cwd string) (dir string, ok bool) {
	if !path.IsAbs(cwd) || strings.IndexByte(cwd, 0) >= 0 {
		return "", false
	}
	dir = path.Clean(cwd)
	tooLong := func(name string) bool { return len(name) > maxElement }
	return dir, len(dir) <= maxCwd && !slices.ContainsFunc(strings.Split(dir, "/"), tooLong)
}

// keyOfCwd returns the key of a clean path, "" for the root.
func keyOfCwd(dir string) string {
	if dir == "/" {
		return ""
	}
	return strings.ReplaceAll(dir, "/", "\x00")
}

// compare orders by directory, and then by the names of files.
func (k cwdKey) compare(other cwdKey) int {
	return cmp.Or(strings.Compare(k.key, other.key), strings.Compare(k.base, other.base), strings.Compare(k.file.name, other.file.name))
}

// from returns the keys >= key.
func (x cwdKeys) from(key string) cwdKeys {
	return x[sort.Search(len(x), func(i int) bool { return x[i].key >= key }):]
}

// own returns the sessions whose working directory is exactly that of key.
func (x cwdKeys) own(key string) cwdKeys {
	keys := x.from(key)
	return keys[:sort.Search(len(keys), func(i int) bool { return keys[i].key != key })]
}

// has reports whether a session is in the directory or below it.
func (x cwdKeys) has(key string) bool {
	keys := x.from(key)
	return len(keys) > 0 && (keys[0].key == key || strings.HasPrefix(keys[0].key, key+"\x00"))
}

// children calls f with the name of each subdirectory, in order.
func (x cwdKeys) children(key string, f func(child string)) {
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

// cwdName returns the name that a subdirectory is listed under: its own, so that a path known from the shell can be typed as
// it is, but for the name of the link.
func cwdName(child string) string {
	if child == latestName {
		return names.EscapeFirst(child)
	}
	return child
}

// child returns the subdirectory that a name in by-cwd/ stands for.
func (x cwdKeys) child(key, name string) (child string, ok bool) {
	if x.has(key + "\x00" + name) {
		return name, true
	}
	return latestName, name == cwdName(latestName) && x.has(key+"\x00"+latestName)
}

// list returns the entries of a directory of by-cwd/, unsorted.
func (x cwdKeys) list(dir string) []CwdEntry {
	key := keyOfCwd(dir)
	var entries []CwdEntry
	taken := map[string]bool{}
	add := func(e CwdEntry) {
		if !taken[e.Name] {
			taken[e.Name] = true
			entries = append(entries, e)
		}
	}
	own := x.own(key)
	if len(own) > 0 {
		add(CwdEntry{Name: latestName})
	}
	if strings.Count(key, "\x00") < maxListedLevels {
		x.children(key, func(child string) {
			if !strings.ContainsFunc(child, names.IsControl) { // which a terminal might obey; it is found by name
				add(CwdEntry{Name: cwdName(child), Dir: path.Join(dir, child)})
			}
		})
	}
	for i := range own {
		add(CwdEntry{Name: x.linkName(key, own, i), file: own[i].file})
	}
	return entries
}

// linkName returns the name of the link to the session own[i]: the base name of its file, followed by a hash of the
// file's path if another entry has that name.
func (x cwdKeys) linkName(key string, own cwdKeys, i int) string {
	base := own[i].base
	twin := i > 0 && own[i-1].base == base || i+1 < len(own) && own[i+1].base == base
	if _, dir := x.child(key, base); !twin && !dir && base != latestName {
		return base
	}
	return withHash(base, own[i].file.name)
}

// withHash returns the name of one of several that have a base name, which differ in their paths.
func withHash(base, path string) string { return cutBase(base) + "~" + names.Hash([]byte(path)) }

// cutBase shortens a file's name so that a hash can follow.
func cutBase(base string) string { return base[:min(len(base), names.MaxName)] }

// beforeHash returns what withHash has cut a base name to; ok is false if the name is none of its.
func beforeHash(name string) (base string, ok bool) {
	at := len(name) - names.HashLength - 1
	if at < 0 || name[at] != '~' {
		return name, false
	}
	return name[:at], true
}

// find returns the entry name of a directory of by-cwd/, without Session and Stat.
func (x cwdKeys) find(dir, name string) (CwdEntry, bool) {
	key := keyOfCwd(dir)
	own := x.own(key)
	if name == latestName && len(own) > 0 {
		return CwdEntry{Name: name}, true
	}
	if child, ok := x.child(key, name); ok {
		return CwdEntry{Name: name, Dir: path.Join(dir, child)}, true
	}
	at := sort.Search(len(own), func(i int) bool { return own[i].base >= name })
	if at < len(own) && own[at].base == name && x.linkName(key, own, at) == name {
		return CwdEntry{Name: name, file: own[at].file}, true
	}
	if base, ok := beforeHash(name); ok {
		for i := range own {
			if strings.HasPrefix(own[i].base, base) && x.linkName(key, own, i) == name {
				return CwdEntry{Name: name, file: own[i].file}, true
			}
		}
	}
	return CwdEntry{}, false
}

// CwdList returns the entries of the directory of by-cwd/ that stands for the working directory dir, unsorted.
func (l *Listing) CwdList(ctx context.Context, dir string) ([]CwdEntry, error) {
	if err := l.lock(ctx, false); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	return l.collectKeys().cwds.list(dir), nil
}

// CwdStat returns the Stat of the directory of by-cwd/ that stands for dir. Its times say when a session was last
// added or removed, in any directory. The error wraps ErrNotFound if no session is in dir or below.
func (l *Listing) CwdStat(ctx context.Context, dir string) (storage.Stat, error) {
	if dir == "/" {
		return l.Stat(ctx)
	}
	if err := l.lock(ctx, false); err != nil {
		return storage.Stat{}, err
	}
	defer l.mu.Unlock()
	if !l.collectKeys().cwds.has(keyOfCwd(dir)) {
		return storage.Stat{}, fmt.Errorf("%w: a session in %q", sessioncore.ErrNotFound, dir)
	}
	return l.newest, nil
}

// CwdFind returns the entry name of the directory of by-cwd/ that stands for dir. The error wraps ErrNotFound if
// there is none. If known is set, it finds what was there when somebody looked last; but the link latest leads
// to the latest session.
func (l *Listing) CwdFind(ctx context.Context, dir, name string, known bool) (CwdEntry, error) {
	known = known && name != latestName
	if err := l.lock(ctx, known); err != nil {
		return CwdEntry{}, err
	}
	defer l.mu.Unlock()
	e, ok := l.collectKeys().cwds.find(dir, name)
	if !ok && !known {
		if err := l.refresh(ctx, true); err != nil {
			return CwdEntry{}, err
		}
		e, ok = l.collectKeys().cwds.find(dir, name)
	}
	if !ok {
		return CwdEntry{}, fmt.Errorf("%w: %q in %q", sessioncore.ErrNotFound, name, dir)
	}
	var err error
	if e.Stat = l.newest; e.Dir == "" {
		e.Session, err = l.findLocked(ctx, known, l.cwdLink(dir, name))
	}
	return e, err
}

// Scope returns the directory with the latest session of a working directory, by the names of files, which begin with
// the time. It is "" if no directory has one. Sessions that lie in no directory do not count, nor does the file except.
func (l *Listing) Scope(ctx context.Context, cwd, except string) (dir string, err error) {
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
	for _, k := range slices.Backward(l.collectKeys().cwds.own(keyOfCwd(dir))) {
		if scope := storage.Dir(k.file.name); scope != "" && k.file.name != except {
			return scope, nil
		}
	}
	return "", nil
}

// cwdLink returns a finder for the session of a link.
func (l *Listing) cwdLink(dir, name string) finder {
	return func() ([]*sessionFile, bool, func(*Info) bool) {
		x := l.collectKeys().cwds
		e, ok := x.find(dir, name)
		latest := ok && e.Dir == "" && e.file == nil
		var files []*sessionFile
		switch {
		case latest:
			for _, k := range x.own(keyOfCwd(dir)) {
				files = append(files, k.file)
			}
		case ok && e.file != nil:
			files = append(files, e.file)
		}
		return files, true, func(i *Info) bool {
			cwd, _ := cleanCwd(i.CWD)
			return cwd == dir && (latest || e.file != nil && e.file.name == i.Name)
		}
	}
}
