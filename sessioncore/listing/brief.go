package listing

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// This file reads no more of a session than its place or its name, where that is all of the answer.

// SetBrief tells that l answers the question of one command and is not asked again, so that a look at
// a tree reads no more of a session than its place, and looks at each file once. It must be called
// before l is used.
func (l *Listing) SetBrief() { l.isBrief = true }

// treeRows returns the rows of a tree, with names at least in the directory of a key. With known, those
// of the last scan. Callers must hold l.mu.
func (l *Listing) treeRows(ctx context.Context, v KeyTable, key string, known bool) (rows, error) {
	t := &l.tree
	if known && t.rows != nil && t.view == v && t.key == key {
		return t.rows, nil
	}
	below, err := l.refreshTree(ctx, v, key)
	if err != nil || !l.isBrief {
		return l.view(v), err
	}
	all := append(below, l.view(v)...)
	slices.SortFunc(all, keyRow.compare)
	all.distinguish()
	*t = treeDirectory{view: v, key: key, rows: all}
	return all, nil
}

// findBrief is TreeFind for a brief listing, which reads the sessions of the directory alone.
func (l *Listing) findBrief(ctx context.Context, v KeyTable, dir, name string, known bool) (TreeEntry, error) {
	err := storage.LockUntil(ctx, &l.mu)
	if err != nil {
		return TreeEntry{}, err
	}
	defer l.mu.Unlock()
	key := keyOfDir(dir)
	all, err := l.treeRows(ctx, v, key, known)
	if err != nil {
		return TreeEntry{}, err
	}
	e, ok := all.find(dir, name)
	if !ok {
		return TreeEntry{}, errNotInTree(dir, name)
	}
	e.Stat = l.newest
	if e.Dir != "" {
		return e, nil
	}
	files := []*sessionFile{e.file}
	if e.file == nil { // the link latest
		files = all.own(key).files()
	}
	isAny := func(*Info) bool { return true }
	found, err := atLeastOne(matching(files, isAny))
	if err != nil {
		return e, err
	}
	e.Session = found[0]
	return e, nil
}

// treeDirectory has the rows of treeRows for a directory of a tree.
type treeDirectory struct {
	view KeyTable
	key  string
	rows rows
}

// refreshTree is refresh for the sessions at a key of a tree. It returns rows without names for
// others, of which it reads only where and when they began. Callers must hold l.mu.
func (l *Listing) refreshTree(ctx context.Context, v KeyTable, key string) (below rows, err error) {
	if !l.isBrief {
		return nil, l.refresh(ctx, unread)
	}
	err = l.readStarts(ctx)
	if err != nil {
		return nil, err
	}
	var rest []*sessionFile
	for f := range l.allFiles {
		if !f.stale {
			continue
		}
		if f.start == nil {
			rest = append(rest, f)
			continue
		}
		dir, isIn := v.dirOf(f.start)
		switch {
		case !isIn:
		case keyOfDir(dir) == key:
			rest = append(rest, f)
		default:
			below = append(below, keyRow{key: keyOfDir(dir), file: f})
		}
	}
	err = l.readPrefixes(ctx, rest)
	l.reportStrangers()
	return below, err
}

// readStarts reads the places of the sessions that are to be read. The first time it looks at all files,
// then at the names in the directories. Callers must hold l.mu.
func (l *Listing) readStarts(ctx context.Context) error {
	x := unread
	if l.hasStarts {
		x = onlyNames
	}
	_, err := l.scan(ctx, x)
	if err != nil {
		return err
	}
	var files []*sessionFile
	for f := range l.allFiles {
		if f.stale && (f.start == nil || f.start.Stat.Token != f.token) {
			files = append(files, f)
		}
	}
	starts, err := l.starts(ctx, files, l.readPlace)
	for i, f := range files {
		f.start = starts[i]
	}
	l.hasStarts = err == nil
	return err
}

// starts reads less of sessions than a list needs, by a function. It returns nil for those of which that is
// not enough.
func (l *Listing) starts(ctx context.Context, files []*sessionFile, read func(*sessionFile) *Info) ([]*Info, error) {
	starts := make([]*Info, len(files))
	err := parallel(len(files), readersPerCPU*runtime.GOMAXPROCS(0), func(i int) error {
		starts[i] = read(files[i])
		return ctx.Err()
	})
	return starts, err
}

// readBriefly reads less of sessions than a list needs, by a function, and of the others what it needs. It
// returns the Infos of those of which less was enough. Callers must hold l.mu.
func (l *Listing) readBriefly(ctx context.Context, files []*sessionFile, read func(*sessionFile) *Info) (infos []*Info, err error) {
	starts, err := l.starts(ctx, files, read)
	if err != nil {
		return nil, err
	}
	var rest []*sessionFile
	for i, f := range files {
		if starts[i] != nil {
			infos = append(infos, starts[i])
		} else {
			rest = append(rest, f)
		}
	}
	return infos, l.readPrefixes(ctx, rest)
}

// readPlace reads the place of a session.
func (l *Listing) readPlace(f *sessionFile) *Info { return l.readStart(f, false) }

// readName reads the name of a session.
func (l *Listing) readName(f *sessionFile) *Info { return l.readStart(f, true) }

// readStart reads the place of a session of which nothing is known, or with named its name. It returns
// nil if more must be read for it.
func (l *Listing) readStart(f *sessionFile, named bool) *Info {
	if f.info != nil || f.dir.hasNoStarts.Load() {
		return nil
	}
	obj, err := l.store.Storage().Open(f.name)
	if err != nil {
		return nil
	}
	defer obj.Close()
	var text []byte
	s, ok := obj.(sessioncore.Started)
	if ok {
		text, err = s.Start(named)
	}
	if !ok || errors.Is(err, storage.ErrUnsupported) {
		f.dir.hasNoStarts.Store(true)
		return nil
	}
	if err != nil || len(text) == 0 {
		return nil
	}
	prefix := text
	if named {
		prefix = text[:min(prefixSize, len(text))]
	}
	info := parseInfo(prefix)
	switch {
	case info == nil:
		return nil
	case named && len(text) < prefixSize && displayText(info.Title, 1) == "" && displayText(info.asked, 1) == "":
		return nil
	}
	info.Size = f.token.Size
	l.complete(info, f, storage.Stat{Token: f.token})
	return info
}

// NewestNamed is NewestFirst for a list of names: a session may lack its parent and the facts about its
// messages. It reads no more of a session than that needs.
func (l *Listing) NewestNamed(ctx context.Context) iter.Seq2[*Info, error] {
	return l.inBatches(ctx, func(batch []timedFile) ([]*Info, error) {
		infos, err := l.readBriefly(ctx, staleIn(batch), l.readName)
		return append(infos, listedIn(batch)...), err
	})
}
