package listing

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// singleCost is what checking a single file costs, as a number of files checked by a full refresh: it takes several
// system calls to get there.
const singleCost = 4

// lookup has indexes of the known sessions. Each is built when it is first needed after a session was added or
// removed, or changed its id, working directory or parent.
type lookup struct {
	resume   *resumeIndex
	cwds     *cwdIndex
	children map[string][]*sessionFile // see Listing.naming
}

// resumeIndex finds the sessions that match a key of --resume.
type resumeIndex struct {
	keys []resumeKey       // sorted, since keys are prefixes
	cut  map[string]string // ids by file names that are too long to contain them
}

// resumeKey is a key in lower case: the id of a session, the name of its file, or what follows the last _ in that.
type resumeKey struct {
	key  string
	isID bool
	file *sessionFile
}

// resumable returns the index, which is built when it is first needed. Callers must hold l.mu.
func (l *Listing) resumable() *resumeIndex {
	if l.lookup.resume == nil {
		x := &resumeIndex{cut: map[string]string{}}
		for f := range l.listed() {
			x.keys = append(x.keys, resumeKey{strings.ToLower(f.info.ID), true, f})
			for _, key := range f.info.fileKeys() {
				x.keys = append(x.keys, resumeKey{key, false, f})
			}
			if names.TooLong([]byte(f.info.ID)) {
				x.cut[names.FileName(f.info.ID)] = f.info.ID
			}
		}
		slices.SortFunc(x.keys, func(a, b resumeKey) int { return strings.Compare(a.key, b.key) })
		l.lookup.resume = x
	}
	return l.lookup.resume
}

// fileKeys returns the keys that the name of the file has.
func (i *Info) fileKeys() []string {
	base := strings.ToLower(string(rawjson.AppendUTF8(nil, []byte(i.BaseName()))))
	if at := strings.LastIndexByte(base, '_'); at >= 0 {
		return []string{base, base[at+1:]}
	}
	return []string{base}
}

// listed iterates over all sessions that have a directory. Callers must hold l.mu.
func (l *Listing) listed() func(yield func(*sessionFile) bool) {
	return func(yield func(*sessionFile) bool) {
		for _, d := range l.dirs {
			for _, f := range d.files {
				if f.info != nil && l.HasDirectory(f.info) && !yield(f) {
					return
				}
			}
		}
	}
}

// startingWith returns the keys that begin with prefix.
func (x *resumeIndex) startingWith(prefix string) []resumeKey {
	from := sort.Search(len(x.keys), func(i int) bool { return x.keys[i].key >= prefix })
	n := sort.Search(len(x.keys)-from, func(i int) bool { return !strings.HasPrefix(x.keys[from+i].key, prefix) })
	return x.keys[from : from+n]
}

// resumes reports whether a lower-case key of --resume matches the session (docs/format.md, Listing and resuming).
func (i *Info) resumes(key string) bool {
	return strings.HasPrefix(strings.ToLower(i.ID), key) ||
		slices.ContainsFunc(i.fileKeys(), func(k string) bool { return strings.HasPrefix(k, key) })
}

// Resume returns the session that --resume finds in all directories for a key, the most recently modified one if
// there are several. name is the key as a file name (docs/design.md section 1, Names); a text that is not such a name
// is the key itself. In pi, a whole id goes before the beginning of one. The error wraps ErrNotFound if there is none.
//
// If known is set, only whole ids are found, among the sessions that were there when somebody looked last.
func (l *Listing) Resume(ctx context.Context, name string, known bool) (*Info, error) {
	whole := ""
	info, err := l.find(ctx, known, func() ([]*sessionFile, bool, func(*Info) bool) {
		x := l.resumable()
		key, ok := names.DecodeName(name)
		if !ok {
			if key, ok = x.cut[name]; !ok {
				key = string(rawjson.AppendUTF8(nil, []byte(name)))
			}
		}
		whole = key
		key = strings.ToLower(key)
		// If the key is a prefix, any file may match by now, which only a full refresh finds out.
		var files []*sessionFile
		isID := false
		for _, k := range x.startingWith(key) {
			files = append(files, k.file) // twice is harmless
			isID = isID || k.isID && k.key == key
		}
		return files, isID, func(i *Info) bool { return i.resumes(key) }
	})
	if err == nil && info.flags&infoPi != 0 && info.ID != whole {
		// pi takes a session with that very id first: ids that users choose can begin others.
		if exact, err := l.byID(ctx, whole, "", known); err == nil {
			return exact, nil
		}
	}
	return info, err
}

// byID returns the session with exactly this id, ignoring the file except.
func (l *Listing) byID(ctx context.Context, id, except string, known bool) (*Info, error) {
	return l.find(ctx, known, func() ([]*sessionFile, bool, func(*Info) bool) {
		var files []*sessionFile
		for _, k := range l.resumable().startingWith(strings.ToLower(id)) {
			if k.isID && k.file.info.ID == id {
				files = append(files, k.file)
			}
		}
		return files, true, func(i *Info) bool { return i.ID == id && i.Name != except }
	})
}

// find returns the most recently modified session that matches. The error wraps ErrNotFound if there is none. If known
// is set, it looks at the files in question alone.
func (l *Listing) find(ctx context.Context, known bool, find finder) (*Info, error) {
	if err := storage.LockUntil(ctx, &l.mu); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if !known {
		if err := l.refresh(ctx, false); err != nil {
			return nil, err
		}
	}
	return l.findLocked(ctx, known, find)
}

// A finder returns the files that may be the wanted session, whether no other file can be, and a function that
// reports whether a session matches.
type finder func() (files []*sessionFile, only bool, fits func(*Info) bool)

// findLocked is find for callers that hold l.mu and have called refresh.
func (l *Listing) findLocked(ctx context.Context, known bool, find finder) (*Info, error) {
	files, only, fits := find()
	if only && (known || singleCost*len(files) <= l.checked()) {
		for _, f := range files {
			if err := l.refreshFile(ctx, f); err != nil {
				return nil, err
			}
		}
		if best := l.newestOf(files, fits); best != nil {
			return best, nil
		}
	}
	if !known {
		if err := l.refresh(ctx, true); err != nil {
			return nil, err
		}
		files, _, fits = find()
		if best := l.newestOf(files, fits); best != nil {
			return best, nil
		}
	}
	return nil, fmt.Errorf("%w: no such session", sessioncore.ErrNotFound)
}

// checked returns the number of files that a full refresh checks.
func (l *Listing) checked() int { return l.files + singleCost } // so that one file is always checked alone

func (l *Listing) newestOf(files []*sessionFile, fits func(*Info) bool) *Info {
	var best *Info
	for _, f := range files {
		if f.info != nil && (best == nil || f.info.compare(best) < 0) && fits(f.info) && l.HasDirectory(f.info) {
			best = f.info
		}
	}
	return best
}
