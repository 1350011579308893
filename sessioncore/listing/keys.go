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

// KeyTable is a sorted table of the known sessions. It is made when it is needed after a session was
// added or removed, or changed in it.
type KeyTable int

const (
	ByCwd    KeyTable = iota // by-cwd/ mirrors the working directories
	ByDate                   // by-date/ has a directory for each day when a session began
	byResume                 // keys of --resume in lower case: ids, file names, and their parts after the last _
	byCutID                  // file names of ids that are too long to contain them
	byParent                 // parentKey
	views
)

// rows are the sorted rows of a table, or a part of them.
type rows []keyRow

// keyRow is a session under one of its keys. The key in a tree is its directory with NULs for slashes,
// so that a directory's own sessions sort before its subdirectories.
type keyRow struct {
	key  string
	name string // of the link in a tree
	isID bool   // the key is the id
	file *sessionFile
}

// rowsOf calls add with the rows of a session, without its file. It has one row in a tree, none if the tree
// does not show it.
func (v KeyTable) rowsOf(i *Info, add func(keyRow)) {
	switch v {
	case ByCwd, ByDate:
		dir, ok := v.dirOf(i)
		if ok {
			add(keyRow{key: keyOfDir(dir), name: v.linkName(i)})
		}
	case byResume:
		add(keyRow{key: strings.ToLower(i.ID), isID: true})
		for _, key := range i.file.keys() {
			add(keyRow{key: key})
		}
	case byCutID:
		if names.TooLong([]byte(i.ID)) {
			add(keyRow{key: names.FileName(i.ID)})
		}
	case byParent:
		key := parentKey(i.Parent)
		if key != "" {
			add(keyRow{key: key})
		}
	}
}

// view returns the rows of a table, and makes them if they are outdated. Callers must hold l.mu.
func (l *Listing) view(v KeyTable) rows {
	if l.views[v] != nil {
		return l.views[v]
	}
	all := rows{}
	for f := range l.listedFiles {
		v.rowsOf(f.info, func(r keyRow) {
			r.file = f
			all = append(all, r)
		})
	}
	slices.SortFunc(all, keyRow.compare)
	if v == ByCwd || v == ByDate {
		all.distinguish()
	}
	l.views[v] = all
	return all
}

// compare orders rows by key, then by the names of links, then by files.
func (r keyRow) compare(other keyRow) int {
	if r.key != other.key {
		return strings.Compare(r.key, other.key)
	}
	if r.name != other.name {
		return strings.Compare(r.name, other.name)
	}
	if r.file == other.file {
		return 0
	}
	return strings.Compare(r.file.name, other.file.name)
}

// fromKey returns the rows with the key or a greater one.
func (x rows) fromKey(key string) rows {
	first := sort.Search(len(x), func(i int) bool {
		return x[i].key >= key
	})
	return x[first:]
}

// own returns the rows with exactly this key.
func (x rows) own(key string) rows {
	x = x.fromKey(key)
	end := sort.Search(len(x), func(i int) bool {
		return x[i].key != key
	})
	return x[:end]
}

// withPrefix returns the rows with keys that begin with a prefix.
func (x rows) withPrefix(prefix string) rows {
	x = x.fromKey(prefix)
	end := sort.Search(len(x), func(i int) bool {
		return !strings.HasPrefix(x[i].key, prefix)
	})
	return x[:end]
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

// resumes reports whether a lower-case key of --resume matches the session (docs/format.md, Listing
// and resuming).
func (i *Info) resumes(key string) bool {
	beginsWithKey := func(text string) bool {
		return strings.HasPrefix(text, key)
	}
	return beginsWithKey(strings.ToLower(i.ID)) || slices.ContainsFunc(i.file.keys(), beginsWithKey)
}

// Resume returns the session that --resume finds in all directories for a key, the latest modified
// one of several. name is the key as a file name (docs/design.md section 1, Names) or the key
// itself. In pi, a complete id precedes the beginning of one. The error wraps ErrNotFound if there
// is none.
//
// If known is set, it finds only complete ids among the sessions of the last scan.
func (l *Listing) Resume(ctx context.Context, name string, known bool) (*Info, error) {
	found, err := l.Resuming(ctx, name, known)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// Resuming returns all sessions that Resume may mean: the one that it returns, then the others, the
// latest modified first.
func (l *Listing) Resuming(ctx context.Context, name string, known bool) ([]*Info, error) {
	key, isKey := names.DecodeName(name)
	if !isKey {
		key = string(rawjson.AppendUTF8(nil, []byte(name)))
	}
	w := wanted{known: known}
	w.find = func() ([]*sessionFile, bool) {
		cut := l.view(byCutID).own(name)
		if !isKey && len(cut) > 0 {
			key = cut[0].file.info.ID // name is a cut one, and only the table has the whole key
		}
		lower := strings.ToLower(key)
		rows := l.view(byResume).withPrefix(lower) // with files twice, which is harmless
		// If the key is a prefix, any file may match by now, which only a full refresh detects.
		isID := slices.ContainsFunc(rows, func(r keyRow) bool {
			return r.isID && r.key == lower
		})
		return rows.files(), isID
	}
	w.fits = func(i *Info) bool {
		return i.resumes(strings.ToLower(key))
	}
	_, isCut := names.CutName(name)
	if isKey || !isCut {
		w.key = key
	}
	found, err := l.find(ctx, w)
	if err != nil {
		return nil, err
	}
	isPi := found[0].flags&infoPi != 0
	if isPi { // it prefers a session with exactly this id: ids that users choose can begin others
		found = exactFirst(found, key)
	}
	return found, nil
}

// exactFirst moves the session with exactly this id to the beginning, in place, and returns found.
func exactFirst(found []*Info, id string) []*Info {
	at := slices.IndexFunc(found, func(i *Info) bool {
		return i.ID == id
	})
	if at <= 0 {
		return found
	}
	exact := found[at]
	found = slices.Delete(found, at, at+1)
	return slices.Insert(found, 0, exact)
}

// byID returns the session with exactly this id, except for one file.
func (l *Listing) byID(ctx context.Context, id, except string) (*Info, error) {
	w := wanted{key: id}
	w.find = func() ([]*sessionFile, bool) {
		var files []*sessionFile
		for _, r := range l.view(byResume).own(strings.ToLower(id)) {
			if r.isID && r.file.info.ID == id {
				files = append(files, r.file)
			}
		}
		return files, true
	}
	w.fits = func(i *Info) bool {
		return i.ID == id && i.Name() != except
	}
	found, err := l.find(ctx, w)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// wanted tells find which sessions to return.
type wanted struct {
	// known limits the search to sessions of the last scan. It looks only at the files of find.
	known bool
	// key is a key of --resume, if names of files may have it; else "".
	key string
	// find returns the files of possible matches, and whether no other file can match. All files
	// are read then.
	find func() (files []*sessionFile, isAll bool)
	// fits reports whether a session matches.
	fits func(*Info) bool
}

// find returns the sessions that match, the latest modified first, at least one. The error wraps
// ErrNotFound if there is none.
func (l *Listing) find(ctx context.Context, w wanted) ([]*Info, error) {
	err := storage.LockUntil(ctx, &l.mu)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if w.known {
		return l.findKnown(ctx, w)
	}
	if w.key != "" {
		_, err := l.scan(ctx, onlyNames)
		if err != nil {
			return nil, err
		}
		found, isAll, err := l.byNames(ctx, w)
		if err != nil {
			return nil, err
		}
		if isAll {
			return atLeastOne(found)
		}
	}
	err = l.refresh(ctx, unread)
	if err != nil {
		return nil, err
	}
	return l.findRefreshed(ctx, w)
}

// findKnown is find among the sessions of the last scan. If others might match, too, the error wraps
// ErrNotFound. Callers must hold l.mu.
func (l *Listing) findKnown(ctx context.Context, w wanted) ([]*Info, error) {
	files, isAll := w.find()
	if !isAll {
		return atLeastOne(nil)
	}
	err := l.refreshFiles(ctx, files)
	if err != nil {
		return nil, err
	}
	return atLeastOne(matching(files, w.fits))
}

// findRefreshed is find after a refresh of the names. It stats the files that can match and, if none of
// these does or others can match too, all files. Callers must hold l.mu.
func (l *Listing) findRefreshed(ctx context.Context, w wanted) ([]*Info, error) {
	files, isAll := w.find()
	if isAll {
		err := l.refreshFiles(ctx, files)
		if err != nil {
			return nil, err
		}
		found := matching(files, w.fits)
		if len(found) > 0 {
			return found, nil
		}
	}
	err := l.refresh(ctx, everyFile)
	if err != nil {
		return nil, err
	}
	files, _ = w.find()
	return atLeastOne(matching(files, w.fits))
}

// atLeastOne returns sessions, or an error that wraps ErrNotFound if there are none.
func atLeastOne(found []*Info) ([]*Info, error) {
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: no such session", sessioncore.ErrNotFound)
	}
	return found, nil
}

// matching returns the sessions in files that match, the latest modified first, each once.
func matching(files []*sessionFile, fits func(*Info) bool) (found []*Info) {
	for _, f := range files {
		if f.info != nil && fits(f.info) {
			found = append(found, f.info)
		}
	}
	slices.SortFunc(found, (*Info).compare)
	return slices.Compact(found)
}
