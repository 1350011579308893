package listing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// View is a sorted table of the known sessions. It is made when it is needed after a session was
// added or removed, or changed in it.
type View int

const (
	ByCwd    View = iota // by-cwd/ mirrors the working directories
	ByDate               // by-date/ has a directory for each day on which a session began
	byResume             // keys of --resume in lower case: ids, file names, and their parts after the last _
	byCutID              // file names of ids that are too long to contain them
	byParent             // parentKey
	views
)

// rows are the rows of a view, sorted.
type rows []row

// row is a session under one of its keys. In a tree that is its directory, in which each / is a
// NUL, so that a directory's own sessions sort before its subdirectories.
type row struct {
	key  string
	name string // of the link in a tree
	isID bool   // the key is the id
	file *sessionFile
}

// rowsOf calls add with the rows of a session, without its file.
func (v View) rowsOf(i *Info, add func(row)) {
	switch v {
	case ByCwd, ByDate:
		if dir, ok := v.dirOf(i); ok {
			add(row{key: keyOfDir(dir), name: v.linkName(i)})
		}
	case byResume:
		add(row{key: strings.ToLower(i.ID), isID: true})
		for _, key := range i.fileKeys() {
			add(row{key: key})
		}
	case byCutID:
		if names.TooLong([]byte(i.ID)) {
			add(row{key: names.FileName(i.ID)})
		}
	case byParent:
		if key := parentKey(i.Parent); key != "" {
			add(row{key: key})
		}
	}
}

// view returns a view. Callers must hold l.mu.
func (l *Listing) view(v View) rows {
	if l.views[v] != nil {
		return l.views[v]
	}
	x := rows{}
	for f := range l.listedFiles {
		v.rowsOf(f.info, func(r row) {
			r.file = f
			x = append(x, r)
		})
	}
	slices.SortFunc(x, row.compare)
	if v == ByCwd || v == ByDate {
		x.distinguish()
	}
	l.views[v] = x
	return x
}

// compare orders by key, then by the names of links.
func (r row) compare(other row) int {
	c := cmp.Or(strings.Compare(r.key, other.key), strings.Compare(r.name, other.name))
	if c != 0 || r.file == other.file {
		return c
	}
	return strings.Compare(r.file.name, other.file.name)
}

// from returns the rows with keys >= key.
func (x rows) from(key string) rows {
	return x[sort.Search(len(x), func(i int) bool { return x[i].key >= key }):]
}

// own returns the rows with exactly this key.
func (x rows) own(key string) rows {
	x = x.from(key)
	return x[:sort.Search(len(x), func(i int) bool { return x[i].key != key })]
}

// files returns the files of rows.
func (x rows) files() (files []*sessionFile) {
	for _, r := range x {
		files = append(files, r.file)
	}
	return files
}

// listedFiles calls f with all known sessions until it returns false. Callers must hold l.mu.
func (l *Listing) listedFiles(f func(*sessionFile) bool) {
	for _, d := range l.dirs {
		for _, file := range d.files {
			if file.info != nil && !f(file) {
				return
			}
		}
	}
}

// fileKeys returns the keys of a file name.
func (i *Info) fileKeys() []string {
	base := strings.ToLower(string(rawjson.AppendUTF8(nil, []byte(i.BaseName()))))
	if at := strings.LastIndexByte(base, '_'); at >= 0 {
		return []string{base, base[at+1:]}
	}
	return []string{base}
}

// Resumes reports whether --resume may find the session by a key.
func (i *Info) Resumes(key string) bool {
	return i.resumes(strings.ToLower(string(rawjson.AppendUTF8(nil, []byte(key)))))
}

// resumes reports whether a lower-case key of --resume matches the session (docs/format.md, Listing
// and resuming).
func (i *Info) resumes(key string) bool {
	return strings.HasPrefix(strings.ToLower(i.ID), key) ||
		slices.ContainsFunc(i.fileKeys(), func(k string) bool { return strings.HasPrefix(k, key) })
}

// Resume returns the session that --resume finds in all directories for a key, the latest modified
// one of several. name is the key as a file name (docs/design.md section 1, Names) or the key
// itself. In pi, a complete id precedes the beginning of one. The error wraps ErrNotFound if there
// is none.
//
// If known is set, it finds only complete ids among the sessions of the last scan.
func (l *Listing) Resume(ctx context.Context, name string, known bool) (*Info, error) {
	fullKey := ""
	info, err := l.find(ctx, known, func() ([]*sessionFile, bool, func(*Info) bool) {
		key, ok := names.DecodeName(name)
		if !ok {
			key = string(rawjson.AppendUTF8(nil, []byte(name)))
			if cut := l.view(byCutID).own(name); len(cut) > 0 {
				key = cut[0].file.info.ID
			}
		}
		fullKey = key
		key = strings.ToLower(key)
		found := l.view(byResume).from(key) // with files twice, which is harmless
		found = found[:sort.Search(len(found), func(i int) bool { return !strings.HasPrefix(found[i].key, key) })]
		// If the key is a prefix, any file may match by now, which only a full refresh detects.
		isID := slices.ContainsFunc(found, func(r row) bool { return r.isID && r.key == key })
		return found.files(), isID, func(i *Info) bool { return i.resumes(key) }
	})
	if err == nil && info.flags&infoPi != 0 && info.ID != fullKey {
		// pi prefers a session with exactly this id: ids that users choose can begin others.
		if exact, err := l.byID(ctx, fullKey, "", known); err == nil {
			return exact, nil
		}
	}
	return info, err
}

// byID returns the session with exactly this id, except for one file.
func (l *Listing) byID(ctx context.Context, id, except string, known bool) (*Info, error) {
	return l.find(ctx, known, func() ([]*sessionFile, bool, func(*Info) bool) {
		found := slices.DeleteFunc(slices.Clone(l.view(byResume).own(strings.ToLower(id))), func(r row) bool {
			return !r.isID || r.file.info.ID != id
		})
		return found.files(), true, func(i *Info) bool { return i.ID == id && i.Name() != except }
	})
}

// finder returns the files of possible matches, whether no other file can match, and a function
// that reports whether a session matches.
type finder func() (files []*sessionFile, only bool, fits func(*Info) bool)

// find returns the latest modified session that matches. The error wraps ErrNotFound if there is
// none. If known is set, it checks only the files of the finder.
func (l *Listing) find(ctx context.Context, known bool, find finder) (*Info, error) {
	if err := l.lock(ctx, known); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	return l.findLocked(ctx, known, find)
}

// findLocked is find for callers that have called lock.
func (l *Listing) findLocked(ctx context.Context, known bool, find finder) (*Info, error) {
	files, only, fits := find()
	if only {
		if err := l.refreshFiles(ctx, files); err != nil {
			return nil, err
		}
		if newest := newestOf(files, fits); newest != nil {
			return newest, nil
		}
	}
	if !known {
		if err := l.refresh(ctx, true); err != nil {
			return nil, err
		}
		files, _, fits = find()
		if newest := newestOf(files, fits); newest != nil {
			return newest, nil
		}
	}
	return nil, fmt.Errorf("%w: no such session", sessioncore.ErrNotFound)
}

func newestOf(files []*sessionFile, fits func(*Info) bool) *Info {
	var newest *Info
	for _, f := range files {
		if f.info != nil && (newest == nil || f.info.compare(newest) < 0) && fits(f.info) {
			newest = f.info
		}
	}
	return newest
}
