package listing

import (
	"fmt"
	"sort"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// singleCost is what looking at one file alone costs, in files of a look at all: the system calls to get
// there.
const singleCost = 4

// lookup finds sessions among those that are known, without looking at each. Its parts are made when they
// are first needed after a session came, went, or changed its id or working directory.
type lookup struct {
	resume *resumeIndex
	cwds   *cwdIndex
}

// resumeIndex finds the sessions that a key of --resume means. Sorted lists, since keys are beginnings.
type resumeIndex struct {
	ids, files, suffixes []resumeKey
	cut                  map[string]string // ids by the names that are too long to tell them
}

type resumeKey struct {
	key  string
	file *sessionFile
}

// resumable returns the index of what is known. Locked by the caller.
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
			if sessioncore.NameTooLong([]byte(f.info.ID)) {
				x.cut[sessioncore.FileName(f.info.ID)] = f.info.ID
			}
		}
		for _, keys := range [][]resumeKey{x.ids, x.files, x.suffixes} {
			sort.Slice(keys, func(i, j int) bool { return keys[i].key < keys[j].key })
		}
		l.lookup.resume = x
	}
	return l.lookup.resume
}

// listed goes through all files that are sessions with a directory. Locked by the caller.
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

// startingWith returns the part of sorted keys that begin with a prefix.
func startingWith(keys []resumeKey, prefix string) []resumeKey {
	from := sort.Search(len(keys), func(i int) bool { return keys[i].key >= prefix })
	n := sort.Search(len(keys)-from, func(i int) bool { return !strings.HasPrefix(keys[from+i].key, prefix) })
	return keys[from : from+n]
}

// candidates returns the files that a key means, and whether it is a whole id. A beginning may be that of
// any file by now, which only a look at all can tell.
func (x *resumeIndex) candidates(key string) (files []*sessionFile, whole bool) {
	ids := startingWith(x.ids, key)
	for _, keys := range [...][]resumeKey{ids, startingWith(x.files, key), startingWith(x.suffixes, key)} {
		for _, k := range keys {
			files = append(files, k.file) // a file may be there twice: it is looked at once more
		}
	}
	return files, len(ids) > 0 && ids[0].key == key
}

// resumes reports whether a lowered key of --resume means the session: a beginning of its id, of its
// file's name, or of what stands behind the last _ in that (docs/format.md, Listing and resuming).
func (i *Info) resumes(key string) bool {
	if strings.HasPrefix(strings.ToLower(i.ID), key) {
		return true
	}
	base := strings.ToLower(string(rawjson.AppendUTF8(nil, []byte(i.BaseName()))))
	at := strings.LastIndexByte(base, '_')
	return strings.HasPrefix(base, key) || at >= 0 && strings.HasPrefix(base[at+1:], key)
}

// Resume returns the session that --resume finds in all directories for a key, which is given as a file
// name (docs/design.md section 1, Names); a text that is no such name stands for itself. Of several the most
// recently modified one. The error wraps ErrNotFound.
func (l *Listing) Resume(name string) (*Info, error) {
	return l.pick(func() ([]*sessionFile, bool, func(*Info) bool) {
		x := l.resumable()
		key, ok := sessioncore.DecodeName(name)
		if !ok {
			if key, ok = x.cut[name]; !ok {
				key = string(rawjson.AppendUTF8(nil, []byte(name)))
			}
		}
		key = strings.ToLower(key)
		files, whole := x.candidates(key)
		return files, whole, func(i *Info) bool { return i.resumes(key) }
	})
}

// byID returns the session with just that id, another one than the file called except.
func (l *Listing) byID(id, except string) (*Info, error) {
	return l.pick(func() ([]*sessionFile, bool, func(*Info) bool) {
		var files []*sessionFile
		for _, k := range startingWith(l.resumable().ids, strings.ToLower(id)) {
			if k.file.info.ID == id {
				files = append(files, k.file)
			}
		}
		return files, true, func(i *Info) bool { return i.ID == id && i.Name != except }
	})
}

// pick returns the most recently modified of the sessions that fit. The error wraps ErrNotFound.
func (l *Listing) pick(find finder) (*Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.look(false); err != nil {
		return nil, err
	}
	return l.choose(find)
}

// finder tells which files may be the session that is looked for, whether it can only be one of them, and
// what fits.
type finder func() (files []*sessionFile, only bool, fits func(*Info) bool)

// choose is pick for who has looked already. Locked by the caller.
func (l *Listing) choose(find finder) (*Info, error) {
	files, only, fits := find()
	if only && singleCost*len(files) <= l.count() {
		for _, f := range files {
			if err := l.again(f); err != nil {
				return nil, err
			}
		}
		if best := l.newestOf(files, fits); best != nil {
			return best, nil
		}
	}
	if err := l.look(true); err != nil {
		return nil, err
	}
	files, _, fits = find()
	if best := l.newestOf(files, fits); best != nil {
		return best, nil
	}
	return nil, fmt.Errorf("%w: no such session", sessioncore.ErrNotFound)
}

// count is the number of files that a look at all looks at.
func (l *Listing) count() int {
	n := singleCost // so that one file is always looked at alone
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
