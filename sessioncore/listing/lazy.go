package listing

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file finds sessions by the names and times of their files, and reads no more files than the
// answer needs (docs/design.md section 5, Lists).

// SetNamed sets the function that reports whether a file's name is the id of its session, which no record can
// change. It must be called before l is used.
func (l *Listing) SetNamed(isNamed func(file string) bool) { l.isNamed = isNamed }

// Placed returns all sessions as Sessions does, the last modified first. For a brief listing it reads only the
// places of those that can tell them: their Infos lack the title and the messages, and also the parent of a session
// that began when no other did. Of a session that began when others did, it reads the header alone if that suffices.
func (l *Listing) Placed(ctx context.Context) ([]*Info, error) {
	if !l.isBrief {
		all, err := l.Sessions(ctx)
		if err != nil {
			return nil, err
		}
		return all.All(), nil
	}
	err := storage.LockUntil(ctx, &l.mu)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	stale, err := l.scan(ctx, everyFile)
	if err != nil {
		return nil, err
	}
	placed, err := l.readBriefly(ctx, stale, l.readPlace)
	if err != nil {
		return nil, err
	}
	infos, together := apart(placed, l.collectSessions().infos)
	headed, err := l.readBriefly(ctx, together, l.readHeader) // a header has the parent
	if err != nil {
		return nil, err
	}
	l.reportStrangers()
	infos = append(infos, headed...)
	infos = append(infos, l.collectSessions().infos...)
	slices.SortFunc(infos, (*Info).compare)
	return infos, nil
}

// apart returns the placed sessions that began when no other session did, and the files of the other placed
// ones: copies of a session begin at the same time, and only their parents distinguish them.
func apart(placed, others []*Info) (alone []*Info, together []*sessionFile) {
	begun := map[int64]int{} // the number of sessions by their beginning
	for _, i := range placed {
		begun[i.created]++
	}
	for _, i := range others {
		begun[i.created]++
	}
	for _, i := range placed {
		if begun[i.created] == 1 {
			alone = append(alone, i)
		} else {
			together = append(together, i.file)
		}
	}
	return alone, together
}

// allFiles calls f with all files of the last scan until it returns false. Callers must hold l.mu.
func (l *Listing) allFiles(f func(*sessionFile) bool) {
	for _, d := range l.dirs {
		for _, file := range d.files {
			if !f(file) {
				return
			}
		}
	}
}

// byNames returns the sessions that match, as far as the names of files tell, the latest modified first.
// It reads the files with the key in their names, and files with names that tell no id. isAll reports whether
// the answer is complete: no other file can match; or one session has the key in its name, alone or as its
// complete id; or a session has the key, a UUID, as its id. Callers must have scanned the names.
func (l *Listing) byNames(ctx context.Context, w wanted) (found []*Info, isAll bool, err error) {
	key := strings.ToLower(w.key)
	var files []*sessionFile
	isAll = true
	for f := range l.allFiles {
		isNamed := l.isNamed != nil && l.isNamed(f.name)
		isRead := f.info != nil && !f.stale
		isUnknown := !isNamed && !isRead && f.idByName() == ""
		knownFits := f.info != nil && w.fits(f.info)
		switch {
		case f.mayHave(key) || knownFits || isUnknown:
			files = append(files, f)
		case !isNamed: // its session may have an id that its name does not show
			isAll = false
		}
	}
	err = l.refreshFiles(ctx, files)
	if err != nil {
		return nil, false, err
	}
	found = matching(files, w.fits)
	isUUID := len(key) == uuidSize && isHexID(key)
	isAlone := len(found) == 1
	isCertain := func(i *Info) bool {
		hasKey := i.file.mayHave(key)
		isWhole := strings.ToLower(i.ID) == key
		switch {
		case hasKey && isAlone:
			return true
		case isWhole:
			return hasKey || isUUID
		}
		return false
	}
	return found, isAll || slices.ContainsFunc(found, isCertain), nil
}

// mayHave reports whether --resume may find a session with the name by a key in lower case.
func (f *sessionFile) mayHave(key string) bool {
	beginsWithKey := func(name string) bool {
		return strings.HasPrefix(name, key)
	}
	if slices.ContainsFunc(f.keys(), beginsWithKey) {
		return true
	}
	id := f.idByName()
	if len(id) == shortID && strings.HasPrefix(key, id) {
		return true // the name has only the beginning of the id
	}
	return id != "" && beginsWithKey(id)
}

// keys returns the keys of --resume in the file's name, in lower case: for A_B.jsonl a_b and b.
func (f *sessionFile) keys() []string {
	base := f.lowerBase()
	at := strings.LastIndexByte(base, '_')
	if at < 0 {
		return []string{base}
	}
	return []string{base, base[at+1:]}
}

// lowerBase returns the file's name in lower case, without its directory and suffix.
func (f *sessionFile) lowerBase() string {
	base := strings.TrimSuffix(f.base(), sessioncore.FileEnding)
	return strings.ToLower(string(rawjson.AppendUTF8(nil, []byte(base))))
}

// Sizes of the ids at the ends of names of files.
const (
	uuidSize = 36
	oldID    = 16 // an id of an old client
	shortID  = 8  // the beginning of a UUID, which Gemini CLI uses
)

// idByName returns the id that the file's name ends with in lower case, or its beginning; "" for
// none. The file may have another one.
func (f *sessionFile) idByName() string {
	base := f.lowerBase()
	for _, size := range [...]int{uuidSize, oldID, shortID} {
		start := len(base) - size
		if start < 0 || !isHexID(base[start:]) {
			continue
		}
		if start == 0 || base[start-1] == '_' || base[start-1] == '-' {
			return base[start:]
		}
	}
	return ""
}

// isHexID reports whether a text in lower case is a UUID, or hexadecimal digits alone.
func isHexID(text string) bool {
	for i, c := range []byte(text) {
		isHyphen := len(text) == uuidSize && slices.Contains(uuidHyphens, i)
		if isHyphen {
			if c != '-' {
				return false
			}
			continue
		}
		isDigit := strings.IndexByte("0123456789abcdef", c) >= 0
		if !isDigit {
			return false
		}
	}
	return true
}

// uuidHyphens are the places of hyphens in a UUID.
var uuidHyphens = []int{8, 13, 18, 23}

// firstBatch is the number of files that NewestFirst reads first, enough for a screen. Batches grow.
const firstBatch = 64

// NewestFirst returns all sessions, the latest modified first. It reads them in batches, as the
// caller goes on; of a brief listing, of sessions with a title only the headers. The caller must not use l meanwhile.
func (l *Listing) NewestFirst(ctx context.Context) iter.Seq2[*Info, error] {
	return l.inBatches(ctx, func(batch []timedFile) (infos []*Info, err error) {
		if l.isBrief {
			infos, err = l.readBriefly(ctx, staleIn(batch), l.readHeader)
		} else {
			err = l.readPrefixes(ctx, staleIn(batch))
		}
		return append(infos, listedIn(batch)...), err
	})
}

// readHeader reads the header of a session of which nothing is known, or returns nil if that has no title
// to show, or if more must be read for it.
func (l *Listing) readHeader(f *sessionFile) *Info {
	if f.info != nil {
		return nil
	}
	obj, err := l.store.Storage().Open(f.name)
	if err != nil {
		return nil
	}
	defer obj.Close()
	headed, ok := obj.(sessioncore.Headed)
	if !ok {
		return nil
	}
	text, st, err := headed.Header()
	if err != nil {
		return nil
	}
	info := parseInfo(text[:min(prefixSize, len(text))])
	if info == nil || displayText(info.Title, 1) == "" {
		return nil
	}
	l.complete(info, f, st)
	return info
}

// inBatches yields the sessions that read returns for batches of files, the latest modified first. A session
// waits until no file that is not read yet can come before it.
func (l *Listing) inBatches(ctx context.Context, read func([]timedFile) ([]*Info, error)) iter.Seq2[*Info, error] {
	return func(yield func(*Info, error) bool) {
		err := storage.LockUntil(ctx, &l.mu)
		if err != nil {
			yield(nil, err)
			return
		}
		defer l.mu.Unlock()
		_, err = l.scan(ctx, everyFile)
		if err != nil {
			yield(nil, err)
			return
		}
		yieldBatches(l.timedFiles(), read, yield)
	}
}

// yieldBatches is inBatches for files, the latest first. Each batch is twice as long as the one before it.
func yieldBatches(files []timedFile, read func([]timedFile) ([]*Info, error), yield func(*Info, error) bool) {
	var waiting []*Info // read, and not yielded yet
	size := firstBatch
	for len(files) > 0 {
		batch := files[:min(size, len(files))]
		files = files[len(batch):]
		size *= 2
		infos, err := read(batch)
		if err != nil {
			yield(nil, err)
			return
		}
		waiting = append(waiting, infos...)
		slices.SortFunc(waiting, (*Info).compare)
		certain := len(waiting)
		if len(files) > 0 {
			certain = files[0].behind(waiting)
		}
		for _, i := range waiting[:certain] {
			if !yield(i, nil) {
				return
			}
		}
		waiting = waiting[certain:]
	}
}

// timedFile is a file with the latest time that the list may show for it.
type timedFile struct {
	*sessionFile
	latest int64 // nanoseconds since the epoch
}

// timedFiles returns all files of the last scan, the greatest latest first. The list shows a session of pi
// with the time of a message, which may be a bit later than its file's. Callers must hold l.mu.
func (l *Listing) timedFiles() (files []timedFile) {
	for _, d := range l.dirs {
		margin := int64(0)
		if l.store.Program(d.name) != sessioncore.ByOMP {
			margin = int64(storage.ClockMargin)
		}
		for _, f := range d.files {
			files = append(files, timedFile{sessionFile: f, latest: f.token.Modified + margin})
		}
	}
	slices.SortFunc(files, func(a, b timedFile) int {
		order := cmp.Compare(b.latest, a.latest)
		if order == 0 {
			order = cmp.Compare(b.base(), a.base())
		}
		if order == 0 {
			order = cmp.Compare(b.name, a.name)
		}
		return order
	})
	return files
}

// behind returns the number of the sorted sessions that come before the file's session, whichever time that
// turns out to have.
func (f timedFile) behind(sorted []*Info) int {
	n := slices.IndexFunc(sorted, func(i *Info) bool {
		if f.latest == i.modified() {
			return f.base() >= i.file.base()
		}
		return f.latest > i.modified()
	})
	if n < 0 {
		return len(sorted)
	}
	return n
}

// listedIn returns the sessions in files.
func listedIn(files []timedFile) (infos []*Info) {
	for _, f := range files {
		if f.info != nil {
			infos = append(infos, f.info)
		}
	}
	return infos
}

// staleIn returns the files that must be read.
func staleIn(files []timedFile) (stale []*sessionFile) {
	for _, f := range files {
		if f.stale {
			stale = append(stale, f.sessionFile)
		}
	}
	return stale
}
