package listing

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// singleCost is what checking a single file costs, as a number of files checked by a full look: it takes several
// system calls to get there.
const singleCost = 4

// lookup has indexes of the known sessions. Each is built when it is first needed after a session was added or
// removed, or changed its id, working directory or parent.
type lookup struct {
	resume   *resumeIndex
	cwds     *cwdIndex
	children map[string][]*sessionFile // see Listing.naming
}

// resumeIndex finds the sessions that match a key of --resume. Its lists are sorted, since keys are prefixes.
type resumeIndex struct {
	ids, files, suffixes []resumeKey
	cut                  map[string]string // ids by file names that are too long to contain them
}

type resumeKey struct {
	key  string
	file *sessionFile
}

// resumable returns the index, which is built when it is first needed. Callers must hold l.mu.
func (l *Listing) resumable() *resumeIndex {
	if l.lookup.resume == nil {
		x := &resumeIndex{cut: map[string]string{}}
		for f := range l.listed() {
			base := strings.ToLower(string(rawjson.AppendUTF8(nil, []byte(f.info.BaseName()))))
			x.ids = append(x.ids, resumeKey{strings.ToLower(f.info.ID), f})
			x.files = append(x.files, resumeKey{base, f})
			if at := strings.LastIndexByte(base, '_'); at >= 0 {
				x.suffixes = append(x.suffixes, resumeKey{base[at+1:], f})
			}
			if names.TooLong([]byte(f.info.ID)) {
				x.cut[names.FileName(f.info.ID)] = f.info.ID
			}
		}
		for _, keys := range [][]resumeKey{x.ids, x.files, x.suffixes} {
			sort.Slice(keys, func(i, j int) bool { return keys[i].key < keys[j].key })
		}
		l.lookup.resume = x
	}
	return l.lookup.resume
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

// startingWith returns the keys that begin with prefix; keys must be sorted.
func startingWith(keys []resumeKey, prefix string) []resumeKey {
	from := sort.Search(len(keys), func(i int) bool { return keys[i].key >= prefix })
	n := sort.Search(len(keys)-from, func(i int) bool { return !strings.HasPrefix(keys[from+i].key, prefix) })
	return keys[from : from+n]
}

// candidates returns the files that key may match, and whether key is a whole id. If it is a prefix, any file may
// match by now, which only a full look finds out.
func (x *resumeIndex) candidates(key string) (files []*sessionFile, whole bool) {
	ids := startingWith(x.ids, key)
	for _, keys := range [...][]resumeKey{ids, startingWith(x.files, key), startingWith(x.suffixes, key)} {
		for _, k := range keys {
			files = append(files, k.file) // duplicates are harmless: the file is checked twice
		}
	}
	return files, len(ids) > 0 && ids[0].key == key
}

// resumes reports whether a lower-case key of --resume matches the session: a prefix of its id, of its file's name,
// or of what follows the last _ in that (docs/format.md, Listing and resuming).
func (i *Info) resumes(key string) bool {
	if strings.HasPrefix(strings.ToLower(i.ID), key) {
		return true
	}
	base := strings.ToLower(string(rawjson.AppendUTF8(nil, []byte(i.BaseName()))))
	at := strings.LastIndexByte(base, '_')
	return strings.HasPrefix(base, key) || at >= 0 && strings.HasPrefix(base[at+1:], key)
}

// Resume returns the session that --resume finds in all directories for a key, the most recently modified one if
// there are several. name is the key as a file name (docs/design.md section 1, Names); a text that is not such a name
// is the key itself. In pi, a whole id goes before the beginning of one. The error wraps ErrNotFound if there is none.
//
// If known is set, only whole ids are found, among the sessions that were there when somebody looked last.
func (l *Listing) Resume(ctx context.Context, name string, known bool) (*Info, error) {
	whole := ""
	info, err := l.pick(ctx, known, func() ([]*sessionFile, bool, func(*Info) bool) {
		x := l.resumable()
		key, ok := names.DecodeName(name)
		if !ok {
			if key, ok = x.cut[name]; !ok {
				key = string(rawjson.AppendUTF8(nil, []byte(name)))
			}
		}
		whole = key
		key = strings.ToLower(key)
		files, whole := x.candidates(key)
		return files, whole, func(i *Info) bool { return i.resumes(key) }
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
	return l.pick(ctx, known, func() ([]*sessionFile, bool, func(*Info) bool) {
		var files []*sessionFile
		for _, k := range startingWith(l.resumable().ids, strings.ToLower(id)) {
			if k.file.info.ID == id {
				files = append(files, k.file)
			}
		}
		return files, true, func(i *Info) bool { return i.ID == id && i.Name != except }
	})
}

// pick returns the most recently modified session that matches. The error wraps ErrNotFound if there is none. If known
// is set, it looks at the files in question alone.
func (l *Listing) pick(ctx context.Context, known bool, find finder) (*Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !known {
		if err := l.look(ctx, false); err != nil {
			return nil, err
		}
	}
	return l.choose(ctx, known, find)
}

// A finder returns the files that may be the wanted session, whether no other file can be, and a function that
// reports whether a session matches.
type finder func() (files []*sessionFile, only bool, fits func(*Info) bool)

// choose is pick for callers that hold l.mu and have called look.
func (l *Listing) choose(ctx context.Context, known bool, find finder) (*Info, error) {
	files, only, fits := find()
	if only && (known || singleCost*len(files) <= l.count()) {
		for _, f := range files {
			if err := l.again(ctx, f); err != nil {
				return nil, err
			}
		}
		if best := l.newestOf(files, fits); best != nil {
			return best, nil
		}
	}
	if !known {
		if err := l.look(ctx, true); err != nil {
			return nil, err
		}
		files, _, fits = find()
		if best := l.newestOf(files, fits); best != nil {
			return best, nil
		}
	}
	return nil, fmt.Errorf("%w: no such session", sessioncore.ErrNotFound)
}

// count returns the number of files that a full look checks.
func (l *Listing) count() int {
	n := singleCost // so that one file is always checked alone
	for _, d := range l.dirs {
		n += len(d.files)
	}
	return n
}

func (l *Listing) newestOf(files []*sessionFile, fits func(*Info) bool) *Info {
	var best *Info
	for _, f := range files {
		if f.info != nil && (best == nil || f.info.compare(best) < 0) && fits(f.info) && l.HasDirectory(f.info) {
			best = f.info
		}
	}
	return best
}
