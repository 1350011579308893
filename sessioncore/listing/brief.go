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

// SetBrief makes l brief: it answers the question of one command. Then a query of a tree reads no more of a
// session than its place, and stats each file once. It must be called before l is used.
func (l *Listing) SetBrief() { l.isBrief = true }

// treeRows returns the sorted rows of a tree. For a brief listing only the rows in the directory of a key
// have names; the others only show that their directories exist. With known, it returns the rows of the last
// call if that was for the same directory. Callers must hold l.mu.
func (l *Listing) treeRows(ctx context.Context, v KeyTable, key string, known bool) (rows, error) {
	last := &l.tree
	isLast := last.rows != nil && last.view == v && last.key == key
	if known && isLast {
		return last.rows, nil
	}
	nameless, err := l.refreshTree(ctx, v, key)
	if err != nil || !l.isBrief {
		return l.view(v), err
	}
	all := append(nameless, l.view(v)...)
	slices.SortFunc(all, keyRow.compare)
	all.distinguish()
	l.tree = treeDirectory{view: v, key: key, rows: all}
	return all, nil
}

// findBrief is TreeFind for a brief listing. It reads only the sessions of the directory.
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
	e, hasName := all.find(dir, name)
	if !hasName {
		return TreeEntry{}, errNotInTree(dir, name)
	}
	e.Stat = l.newest
	isDirectory := e.Dir != ""
	if isDirectory {
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

// refreshTree is refresh for the sessions in the directory of a key of a tree. It returns rows without names
// for other sessions: a brief listing reads only their places and starts. Callers must hold l.mu.
func (l *Listing) refreshTree(ctx context.Context, v KeyTable, key string) (nameless rows, err error) {
	if !l.isBrief {
		return nil, l.refresh(ctx, unread)
	}
	err = l.readStarts(ctx)
	if err != nil {
		return nil, err
	}
	var unknown []*sessionFile
	for f := range l.allFiles {
		if !f.stale {
			continue
		}
		if f.start == nil {
			unknown = append(unknown, f)
			continue
		}
		dir, isInTree := v.dirOf(f.start)
		if !isInTree {
			continue
		}
		if keyOfDir(dir) == key {
			unknown = append(unknown, f)
			continue
		}
		nameless = append(nameless, keyRow{key: keyOfDir(dir), file: f})
	}
	err = l.readPrefixes(ctx, unknown)
	l.reportStrangers()
	return nameless, err
}

// readStarts sets start of the files that are to be read. The first time it stats the unread files, later
// it reads only the names in the directories. Callers must hold l.mu.
func (l *Listing) readStarts(ctx context.Context) error {
	scanned := unread
	if l.hasStarts {
		scanned = onlyNames
	}
	_, err := l.scan(ctx, scanned)
	if err != nil {
		return err
	}
	var files []*sessionFile
	for f := range l.allFiles {
		hasStart := f.start != nil && f.start.Stat.Token == f.token
		if f.stale && !hasStart {
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

// starts returns the result of read for each file: an incomplete Info, or nil. It calls read on several
// goroutines. With an error, which is that of ctx, some results are missing.
func (l *Listing) starts(ctx context.Context, files []*sessionFile, read func(*sessionFile) *Info) ([]*Info, error) {
	starts := make([]*Info, len(files))
	readers := readersPerCPU * runtime.GOMAXPROCS(0)
	err := storage.Parallel(len(files), readers, func(i int) error {
		starts[i] = read(files[i])
		return ctx.Err()
	})
	return starts, err
}

// readBriefly calls read for each file, and returns its Infos. Files without one are read as for a list, and
// are not in the result. Callers must hold l.mu.
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

// readPlace reads the place of a session that was never read, nil if it must be read as for a list.
func (l *Listing) readPlace(f *sessionFile) *Info {
	const named = false
	return l.readStart(f, named)
}

// readName reads the name of a session that was never read, nil if it must be read as for a list.
func (l *Listing) readName(f *sessionFile) *Info {
	const named = true
	return l.readStart(f, named)
}

// readStart is readPlace or, with named, readName. It records a directory with sessions that cannot be read
// so.
func (l *Listing) readStart(f *sessionFile, named bool) *Info {
	if f.info != nil || f.dir.hasNoStarts.Load() {
		return nil
	}
	obj, err := l.store.Storage().Open(f.name)
	if err != nil {
		return nil
	}
	defer obj.Close()
	started, hasStart := obj.(sessioncore.Started)
	if !hasStart {
		f.dir.hasNoStarts.Store(true)
		return nil
	}
	text, err := started.Start(named)
	if errors.Is(err, storage.ErrUnsupported) {
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
	if info == nil {
		return nil
	}
	hasName := displayText(info.Title, 1) != "" || displayText(info.asked, 1) != ""
	isCut := len(text) >= prefixSize // then a list would not find a name either
	if named && !hasName && !isCut {
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
