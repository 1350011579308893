package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// worker searches files in one goroutine. It reads as little of each as the answer needs. A search for
// "mutex" in a session of another agent:
//
//	isWithin      the header has the right directory                         a few bytes
//	scanRaw       "mutex" is in the agent's own file                         a scan; most sessions end here;
//	                                                                         one of all rows of a database
//	scan          "mutex" is in the converted session, at some lines         a conversion and a scan
//	check         the entries in these lines have it in a text that counts   an index, and these entries
//
// So a step may let a session pass that has no hit, but never drops one that has.
type worker struct {
	s       *Searcher
	m       Matcher
	counts  bool // only the number of hits is requested
	tables  *tableScans
	scanner scanner
	buffer  sessioncore.ConversionBuffer // for sessions that are only counted

	mayOutput bool // the session that is searched may have long results in files beside it
}

// fileTries bounds the searches of a file that is replaced meanwhile.
const fileTries = 3

// file searches a file. A removed one, or one that is no session, has no hits; another error is in Err.
func (w *worker) file(ctx context.Context, f searchedFile) *FileHits {
	found := &FileHits{File: f.name, Tree: w.s.Tree, token: f.Token}
	var err error
	for range fileTries {
		err = w.search(ctx, f, found)
		if !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	isNoSession := errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular)
	if err == nil || isNoSession || storage.IsMissing(err) {
		return found
	}
	found.Err = err
	found.Hits = nil
	found.counted = nil
	return found
}

// search searches a file by the steps of worker, and puts the hits, the time and the state of the file into
// found. A session without hits ends it early. An error wraps storage.ErrStale if the file was replaced
// meanwhile; found may then have hits, which the next search replaces.
func (w *worker) search(ctx context.Context, f searchedFile, found *FileHits) error {
	found.readAt = time.Now().UnixNano()
	header := func() (rawjson.Value, error) {
		return sessioncore.ReadHeaderOf(ctx, w.s.Files, found.File)
	}
	mayMatch, err := w.mayMatch(ctx, f, header)
	if err != nil || !mayMatch {
		return err
	}
	needle, mayHave, err := w.m.Needle(w.s.agentOf(found.File), header)
	if err != nil || !mayHave {
		return err
	}
	obj, err := w.s.Files.Open(f.name)
	if err != nil {
		return err
	}
	defer obj.Close()
	needle, mayHave, err = w.scanRaw(ctx, f, obj, needle)
	if err != nil || !mayHave {
		return err
	}
	if w.counts { // each session once: no index of it is worth a place in the cache
		session, err := w.buffer.Convert(ctx, obj)
		if err != nil {
			return err
		}
		if session != nil {
			return w.searchOnce(ctx, found, session, needle)
		}
	}
	return w.searchStored(ctx, found, obj, needle)
}

// searchStored searches a session that the store converts, if it is another agent's, and indexes only if
// the needle is in it.
func (w *worker) searchStored(ctx context.Context, found *FileHits, obj storage.Object, needle *Needle) error {
	token, lines, err := w.scan(ctx, obj, needle)
	found.token = token
	if err != nil || len(lines) == 0 {
		return err
	}
	session := w.s.store.Session(found.File)
	defer session.Drop()
	snap, err := session.Acquire(ctx)
	if err != nil {
		return err
	}
	defer snap.Release()
	current := snap.Stat().Token
	if current != found.token { // the file changed after the scan, so that its lines are others
		found.token = current
		lines = everywhere
		w.mayOutput = true // scanRaw looked for long results before the change
	}
	return w.checkShown(ctx, found, snap, lines)
}

// mayMatch reports whether a session may have a hit, by its time, its header, which header reads, and, for
// calls of tools, the bytes of its file. It converts nothing.
func (w *worker) mayMatch(ctx context.Context, f searchedFile, header func() (rawjson.Value, error)) (bool, error) {
	q, isQuery := w.m.(*Query)
	if isQuery && q.isOver(f.ModTime()) {
		return false, nil
	}
	isWithin, err := w.s.isWithin(header)
	if err != nil || !isWithin {
		return false, err
	}
	calls, isOfCalls := w.m.(callMatcher)
	if !isOfCalls {
		return true, nil
	}
	return w.mayHaveCall(ctx, f, calls, header)
}

// searchOnce searches a session that was converted for the worker alone, so that no cache keeps it.
func (w *worker) searchOnce(ctx context.Context, found *FileHits, session storage.Object, needle *Needle) error {
	token, lines, err := w.scan(ctx, session, needle)
	found.token = token
	if err != nil || len(lines) == 0 {
		return err
	}
	snap, err := w.s.store.Index(ctx, found.File, session)
	if err != nil {
		return err
	}
	defer snap.Release()
	return w.checkShown(ctx, found, snap, lines)
}

// checkShown is check, but a session without a directory in the mount has no hits: a real file or link of
// that name hides the directory (docs/design.md section 1).
func (w *worker) checkShown(ctx context.Context, found *FileHits, snap *sessioncore.Snapshot, lines []candidate) error {
	st, err := w.s.Files.Stat(strings.TrimSuffix(found.File, sessioncore.FileEnding))
	hides := st.Kind == storage.KindFile || st.Kind == storage.KindLink
	if err == nil && hides {
		return nil
	}
	return w.check(ctx, found, snap, lines)
}

// callMatcher is a Matcher for calls of tools, which can be found in the bytes of an agent's own file.
type callMatcher interface {
	// inRaw returns a needle in the bytes of each session that may have a hit, nil if any session may. cwd is
	// the session's directory if the bytes do not have it, and header reads the header.
	inRaw(cwd string, header func() (rawjson.Value, error)) *Needle
	// begunInTime reports whether a session with a header may have calls that count.
	begunInTime(header func() (rawjson.Value, error)) (bool, error)
}

// mayHaveCall reports whether a session may have a call that is a hit. It searches the bytes of the agent's
// file, and converts nothing.
func (w *worker) mayHaveCall(
	ctx context.Context, f searchedFile, m callMatcher, header func() (rawjson.Value, error),
) (bool, error) {
	isBegun, err := m.begunInTime(header)
	if err != nil || !isBegun {
		return false, err
	}
	obj, err := w.s.Files.Open(f.name)
	if err != nil {
		return false, err
	}
	defer obj.Close()
	raw := storage.Object(obj)
	cwd := ""
	c, isConverted := obj.(converted)
	if isConverted {
		raw = c.Raw()
		_, cwd = c.Beside()
	}
	needle := m.inRaw(cwd, header)
	if needle == nil {
		return true, nil
	}
	st, err := storage.StatUntil(ctx, raw)
	if err != nil {
		return false, err
	}
	return w.scanner.has(ctx, raw, st.Size, needle)
}

// scanRaw searches the agent's own file of a converted session, and the long results beside it. It returns
// the needle for the session, and whether that may have it. A session that is not converted is searched by
// scan alone. It sets mayOutput: true if files of long results are there, or may have come since the list
// of files was made.
func (w *worker) scanRaw(ctx context.Context, f searchedFile, obj storage.Object, needle *Needle) (_ *Needle, mayHave bool, err error) {
	w.mayOutput = true
	c, isConverted := obj.(converted)
	if !isConverted {
		return needle, true, nil
	}
	raw := c.Raw()
	lacksAny, err := w.tables.lacks(ctx, raw, needle)
	if err != nil || lacksAny {
		return needle, false, err
	}
	st, err := raw.Stat()
	if err != nil {
		return needle, false, err
	}
	isUnchanged := ownToken(raw, st) == f.Token
	w.mayOutput = f.hasOutputs || !isUnchanged
	if w.mayOutput {
		isInOutputs, err := w.inOutputs(ctx, f.name, needle)
		if err != nil {
			return needle, false, err
		}
		if isInOutputs {
			return needle.orOutputs(), true, nil
		}
	}
	title, _ := c.Beside()
	if !needle.isInRaw() || needle.isIn([]byte(title)) { // the agent's own file tells nothing
		return needle, true, nil
	}
	mayHave, err = w.scanner.has(ctx, raw, st.Size, needle.inRaw())
	return needle, mayHave, err
}

// scan returns the places of the needle in a session, none if it is not there, and the session's state before
// the scan.
func (w *worker) scan(ctx context.Context, obj storage.Object, needle *Needle) (_ storage.Token, lines []candidate, err error) {
	st, err := storage.StatUntil(ctx, obj)
	if err != nil {
		return st.Token, nil, err
	}
	lines, err = w.scanner.find(ctx, obj, st.Size, needle)
	if len(lines) > 0 && needle != nil && needle.anyLine {
		lines = everywhere
	}
	return st.Token, lines, err
}

// ownToken returns the state of a session's own file. st is the state of obj, and its size may include
// the records of other files, which the token in a list of files does not have.
func ownToken(obj storage.Object, st storage.Stat) storage.Token {
	joined, isJoined := obj.(storage.JoinedObject)
	if isJoined {
		st.Size -= joined.Joined()
	}
	return st.Token
}

// converted is an open session that is converted from another file. That file has the same strings of JSON,
// so a search looks there first: a conversion takes longer.
type converted interface {
	// Raw returns the other file.
	Raw() storage.Object
	// Beside returns the title and the working directory as far as they are not in that file, else "".
	Beside() (title, cwd string)
}

// check replaces the hits of found by those in some lines of a session, which are sorted, and the title if it
// is a hit. It sets the facts about the session too. A search keeps at most one hit more than its limit.
func (w *worker) check(ctx context.Context, found *FileHits, snap *sessioncore.Snapshot, lines []candidate) error {
	found.Hits = nil
	found.counted = nil
	header, slot, err := snap.ReadHeader()
	if err != nil {
		return err
	}
	title := found.setSession(snap, header)
	matching := w.m.Checker(header, title)
	if matching == nil {
		return nil
	}
	hits := hitList{owner: found, snap: snap, counts: w.counts}
	ownTitle := header.Member("title")
	if slot != nil {
		ownTitle = slot.Member("title")
	}
	line, isHit := matching.Title(ownTitle, snap.HeaderTime())
	if isHit {
		hits.add(Hit{What: TitleLabel, Time: snap.HeaderTime(), Line: line})
	}
	r := sessioncore.NewEntryReader(snap)
	entries := newestFirst(snap, lines)
	calls, isOfCalls := matching.(*touchChecker)
	if isOfCalls {
		entries, err = calls.callsOf(ctx, snap, entries, r.Read)
		if err != nil {
			return err
		}
	}
	err = w.checkEntries(ctx, &hits, matching, &r, entries)
	if err != nil {
		return err
	}
	hits.finish()
	return nil
}

// checkEntries adds the hits among entries, in their order, up to one hit more than the limit: that one tells
// that there are more. A count needs neither prompts nor roles.
func (w *worker) checkEntries(
	ctx context.Context, hits *hitList, matching Checker, r *sessioncore.EntryReader, entries []sessioncore.Entry,
) error {
	snap := hits.snap
	words, isOfWords := matching.(*checker)
	if isOfWords {
		words.prompt.AreOff = w.counts
	}
	for _, e := range entries {
		err := ctx.Err()
		if err != nil {
			return err
		}
		text, err := r.Read(e)
		if err != nil {
			return err
		}
		if isOfWords && w.mayOutput && snap.Role(e) == sessioncore.RoleToolResult {
			words.output = w.output(hits.owner.File, text)
		}
		hit, isHit := matching.Entry(snap, e, text)
		if !isHit {
			continue
		}
		hit.setEntry(snap, e)
		if !w.counts {
			hit.setRole(snap, e, text)
		}
		hits.add(hit)
		if len(hits.all) > w.s.Limit {
			return nil // the number beyond the limit does not matter
		}
	}
	return nil
}

// setSession sets the facts about the session, which has a header, and returns its title.
func (f *FileHits) setSession(snap *sessioncore.Snapshot, header rawjson.Value) (title string) {
	f.Session, title = listing.DisplayName(snap, f.File)
	f.Title = listing.NameLine(title)
	f.start = snap.HeaderTime()
	f.ID, _ = header.Member("id").Text()
	f.isFork = header.Member(snap.Dialect().ParentSessionKey).IsString()
	return title
}

// hitList collects the hits of a session, or only their keys if they are counted.
type hitList struct {
	owner  *FileHits
	snap   *sessioncore.Snapshot
	counts bool
	all    []Hit
}

// add adds a hit, or its key where hits are only counted.
func (l *hitList) add(hit Hit) {
	if l.counts {
		l.owner.counted = append(l.owner.counted, hit.copyKey())
		return
	}
	hit.FileHits = l.owner
	l.all = append(l.all, hit)
}

// finish gives the hits to the session, the newest first. The title has the time of the header.
func (l *hitList) finish() {
	slices.SortStableFunc(l.all, func(a, b Hit) int {
		return b.Time.Compare(a.Time)
	})
	l.owner.Hits = l.all
}

// setRole sets the role of the entry's message, which is the user's for every request of a person; "" if it
// has none. text is the entry.
func (h *Hit) setRole(snap *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) {
	role, _ := snap.Message(e, text).Member("role").Text()
	h.Role = rawjson.CamelCase(role)
	if snap.IsRequest(e) {
		h.Role = userRole
	}
}

// setEntry sets the place of the entry of a hit.
func (h *Hit) setEntry(snap *sessioncore.Snapshot, e sessioncore.Entry) {
	h.Entry = snap.Name(e)
	h.What = snap.PathLabel(e)
	h.Time = snap.Time(e)
}

// newestFirst returns the entries that overlap one of the lines, each once, the newest first. lines are sorted
// by their beginnings.
func newestFirst(snap *sessioncore.Snapshot, lines []candidate) (entries []sessioncore.Entry) {
	next := sessioncore.Entry(0)
	for _, l := range lines {
		rest := snap.Len() - int(next)
		skipped := sort.Search(rest, func(i int) bool {
			r, _ := snap.EntryRange(next + sessioncore.Entry(i))
			return r.Offset+r.Size > l.from
		})
		next += sessioncore.Entry(skipped)
		for int(next) < snap.Len() {
			r, _ := snap.EntryRange(next)
			if r.Offset >= l.to {
				break
			}
			entries = append(entries, next)
			next++
		}
	}
	slices.SortFunc(entries, snap.CompareNewest)
	return entries
}

// chunkSize is the size of a read, which fits into a core's cache with other data.
const chunkSize = 256 << 10

// firstSize is the size of the first read where only the first place matters: of a common word it has one.
const firstSize = 32 << 10

// candidate is a range of a file, from the offset of a match to the end of its line. The end is 0 while it is
// not known.
type candidate struct {
	from int64
	to   int64
}

// maxCandidates bounds the candidates of one file. Beyond it all entries are checked.
const maxCandidates = 1 << 20

// scanner reads files and finds needles in them. It is not safe for concurrent use.
type scanner struct {
	buf  []byte
	base int64 // the offset in the file of the first byte in buf
	have int   // the number of bytes of the file in buf
	// onlyFirst says that a file is read up to the first place, as the others do not matter.
	onlyFirst bool
}

// everywhere is the candidate of a match at an unknown place.
var everywhere = []candidate{{from: 0, to: math.MaxInt64}}

// find returns the places of a needle, or of an alternative of it, in the first size bytes of a file, in the
// order of the file: of each alternative at most one a line. It returns everywhere for no needle, and for
// more than maxCandidates places of one. After an error the places are of no use.
func (s *scanner) find(ctx context.Context, file io.ReaderAt, size int64, n *Needle) (found []candidate, err error) {
	if n == nil {
		return everywhere, nil
	}
	found, err = s.findOne(ctx, file, size, n)
	if err != nil || n.or == nil {
		return found, err
	}
	others, err := s.find(ctx, file, size, n.or)
	found = append(slices.Clip(found), others...) // a copy, as found may be everywhere
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Compare(a.from, b.from)
	})
	return found, err
}

// has reports whether find finds any place. It reads no further than the first one of any alternative. No
// needle is everywhere.
func (s *scanner) has(ctx context.Context, file io.ReaderAt, size int64, n *Needle) (bool, error) {
	if n == nil {
		return true, nil
	}
	s.onlyFirst = true
	defer func() { s.onlyFirst = false }()
	for alternative := n; alternative != nil; alternative = alternative.or {
		found, err := s.findOne(ctx, file, size, alternative)
		if err != nil || len(found) > 0 {
			return len(found) > 0, err
		}
	}
	return false, nil
}

// findOne is find for a needle without its alternatives. It reads the file in chunks. Behind each chunk it
// keeps the bytes that a match at the next offset needs: n.reach() before it and after it.
func (s *scanner) findOne(ctx context.Context, file io.ReaderAt, size int64, n *Needle) (found []candidate, err error) {
	reach := int64(n.reach())
	s.empty(chunkSize + 2*reach)
	next := int64(0) // the first offset that is not checked
	step := int64(chunkSize)
	if s.onlyFirst {
		step = firstSize
	}
	for s.end() < size {
		err := ctx.Err()
		if err != nil {
			return nil, err
		}
		runtime.Gosched() // for other requests
		err = s.read(file, min(step, size-s.end()))
		if err == io.EOF {
			return everywhere, nil // the file was cut meanwhile, as a read of the session will detect
		}
		if err != nil {
			return nil, err
		}
		step = chunkSize
		limit := size
		if s.end() < size {
			limit = s.end() - reach // further matches need bytes of the next chunk
		}
		found, next = n.scanBuffer(s.buf[:s.have], s.base, next, limit, found)
		if s.onlyFirst && len(found) > 0 {
			return found, nil
		}
		if len(found) > maxCandidates {
			return everywhere, nil
		}
		s.dropBefore(next - reach)
	}
	last := len(found) - 1
	if last >= 0 && found[last].to == 0 { // the last line of the file has no end
		found[last].to = size
	}
	return found, nil
}

// empty makes the buffer empty, at the beginning of a file, with room for size bytes at least.
func (s *scanner) empty(size int64) {
	if int64(len(s.buf)) < size {
		s.buf = make([]byte, size)
	}
	s.base = 0
	s.have = 0
}

// end returns the offset in the file behind the bytes in the buffer.
func (s *scanner) end() int64 { return s.base + int64(s.have) }

// read reads the next n bytes of a file into the buffer, which has room for them. The error is io.EOF if the
// file has fewer.
func (s *scanner) read(file io.ReaderAt, n int64) error {
	part := s.buf[s.have : s.have+int(n)]
	got, err := file.ReadAt(part, s.end())
	switch {
	case got == len(part):
		s.have += got
		return nil
	case err == nil:
		return io.EOF
	}
	return err
}

// dropBefore removes the bytes before an offset of the file from the buffer.
func (s *scanner) dropBefore(offset int64) {
	kept := max(s.base, offset)
	s.have = copy(s.buf, s.buf[kept-s.base:s.have])
	s.base = kept
}

// scanBuffer checks the offsets of a file from next up to limit, and appends the matches to found. b has the
// file's bytes from offset base on. At most one match counts in a line. The last match has the end 0 if its
// line goes on behind b. scanBuffer returns the next offset, too.
func (n *Needle) scanBuffer(b []byte, base, next, limit int64, found []candidate) ([]candidate, int64) {
	for next < limit {
		last := len(found) - 1
		if last >= 0 && found[last].to == 0 {
			lineEnd := bytes.IndexByte(b[next-base:], '\n')
			if lineEnd < 0 {
				return found, base + int64(len(b))
			}
			next += int64(lineEnd) + 1
			found[last].to = next
			continue
		}
		at := n.pair.next(b, int(next-base))
		next = base + int64(at)
		if next >= limit {
			return found, limit
		}
		if n.isAt(b, at) {
			found = append(found, candidate{from: next})
		}
		next++
	}
	return found, next
}
