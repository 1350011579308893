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
)

// keys finds the known sessions. Each part is nil until it is needed after a session was added or
// removed, or changed its id or parent.
type keys struct {
	resume   []resumeKey       // sorted, since keys are prefixes
	cutIDs   map[string]string // ids by file names too long to contain them
	trees    [trees]treeKeys
	children map[string][]*sessionFile // by parentKey
}

// resumeKey is a key of --resume in lower case: an id, a file name, or its part after the last _.
type resumeKey struct {
	key  string
	isID bool
	file *sessionFile
}

// collectKeys returns the keys of all known sessions. Callers must hold l.mu.
func (l *Listing) collectKeys() *keys {
	if l.keys == nil {
		l.keys = &keys{}
	}
	return l.keys
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

// resumeKeys returns the keys, those of --resume included. Callers must hold l.mu.
func (l *Listing) resumeKeys() *keys {
	k := l.collectKeys()
	if k.resume != nil {
		return k
	}
	k.resume, k.cutIDs = []resumeKey{}, map[string]string{}
	for f := range l.listedFiles {
		k.resume = append(k.resume, resumeKey{strings.ToLower(f.info.ID), true, f})
		for _, key := range f.info.fileKeys() {
			k.resume = append(k.resume, resumeKey{key, false, f})
		}
		if names.TooLong([]byte(f.info.ID)) {
			k.cutIDs[names.FileName(f.info.ID)] = f.info.ID
		}
	}
	slices.SortFunc(k.resume, func(a, b resumeKey) int { return strings.Compare(a.key, b.key) })
	return k
}

// childrenOf returns the sessions whose parent has a key. Callers must hold l.mu.
func (l *Listing) childrenOf(key string) []*sessionFile {
	k := l.collectKeys()
	if k.children == nil {
		k.children = map[string][]*sessionFile{}
		for f := range l.listedFiles {
			if key := parentKey(f.info.Parent); key != "" {
				k.children[key] = append(k.children[key], f)
			}
		}
	}
	return k.children[key]
}

// fileKeys returns the keys of a file name.
func (i *Info) fileKeys() []string {
	base := strings.ToLower(string(rawjson.AppendUTF8(nil, []byte(i.BaseName()))))
	if at := strings.LastIndexByte(base, '_'); at >= 0 {
		return []string{base, base[at+1:]}
	}
	return []string{base}
}

// startingWith returns the keys of --resume that begin with prefix.
func (k *keys) startingWith(prefix string) []resumeKey {
	from := sort.Search(len(k.resume), func(i int) bool { return k.resume[i].key >= prefix })
	n := sort.Search(len(k.resume)-from, func(i int) bool { return !strings.HasPrefix(k.resume[from+i].key, prefix) })
	return k.resume[from : from+n]
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
		k := l.resumeKeys()
		key, ok := names.DecodeName(name)
		if !ok {
			if key, ok = k.cutIDs[name]; !ok {
				key = string(rawjson.AppendUTF8(nil, []byte(name)))
			}
		}
		fullKey = key
		key = strings.ToLower(key)
		// If the key is a prefix, any file may match by now, which only a full refresh detects.
		var files []*sessionFile
		isID := false
		for _, k := range k.startingWith(key) {
			files = append(files, k.file) // twice is harmless
			isID = isID || k.isID && k.key == key
		}
		return files, isID, func(i *Info) bool { return i.resumes(key) }
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
		var files []*sessionFile
		for _, k := range l.resumeKeys().startingWith(strings.ToLower(id)) {
			if k.isID && k.file.info.ID == id {
				files = append(files, k.file)
			}
		}
		return files, true, func(i *Info) bool { return i.ID == id && i.Name() != except }
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
