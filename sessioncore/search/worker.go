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

// worker searches files in one goroutine.
type worker struct {
	s       *Searcher
	m       Matcher
	scanner scanner
	// mayOutput is set if the session that is searched may have long results beside it.
	mayOutput bool
	counts    bool                         // only the number of hits is requested
	buffer    sessioncore.ConversionBuffer // for sessions that are only counted
}

// fileTries bounds the searches of a file that is replaced meanwhile.
const fileTries = 3

// file searches a file. A removed one, or one that is no session, has no hits.
func (w *worker) file(ctx context.Context, f searchedFile) *FileHits {
	found := &FileHits{File: f.name, Tree: w.s.Tree, token: f.Token}
	err := storage.ErrStale
	for try := 0; try < fileTries && errors.Is(err, storage.ErrStale); try++ {
		err = w.search(ctx, f, found)
	}
	isSession := !errors.Is(err, sessioncore.ErrNotSession) && !errors.Is(err, storage.ErrNotRegular)
	if err != nil && !storage.IsMissing(err) && isSession {
		found.Err = err
		found.Hits = nil
		found.counted = nil
	}
	return found
}

// search searches a file: its bytes, then the entries at matches.
func (w *worker) search(ctx context.Context, f searchedFile, found *FileHits) error {
	found.readAt = time.Now().UnixNano()
	if q, ok := w.m.(*Query); ok && q.isOver(f.ModTime()) {
		return nil
	}
	header := func() (rawjson.Value, error) { return sessioncore.ReadHeaderOf(ctx, w.s.Files, found.File) }
	if isWithin, err := w.s.isWithin(header); err != nil || !isWithin {
		return err
	}
	if calls, ok := w.m.(callMatcher); ok {
		mayHave, err := w.mayHaveCall(ctx, f, calls, header)
		if err != nil || !mayHave {
			return err
		}
	}
	needle, ok, err := w.m.Needle(w.s.agentOf(found.File), header)
	if err != nil || !ok {
		return err
	}
	obj, err := w.s.Files.Open(f.name)
	if err != nil {
		return err
	}
	defer obj.Close()
	needle, mayHave, err := w.scanRaw(ctx, f, obj, needle)
	if err != nil || !mayHave {
		return err
	}
	if w.counts {
		session, err := w.buffer.Convert(ctx, obj)
		if err != nil {
			return err
		}
		if session != nil {
			return w.searchOnce(ctx, found, session, needle)
		}
	}
	var lines []candidate
	found.token, lines, err = w.scan(ctx, obj, needle)
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
	if snap.Stat().Token != found.token {
		found.token = snap.Stat().Token
		lines = everywhere // it changed meanwhile
		w.mayOutput = true
	}
	return w.checkShown(ctx, found, snap, lines)
}

// searchOnce searches a session that is converted for the worker alone.
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

// checkShown is check for a session whose directory is shown. A real file or link of that name hides it
// (docs/design.md section 1).
func (w *worker) checkShown(ctx context.Context, found *FileHits, snap *sessioncore.Snapshot, lines []candidate) error {
	st, err := w.s.Files.Stat(strings.TrimSuffix(found.File, sessioncore.FileEnding))
	if err == nil && (st.Kind == storage.KindFile || st.Kind == storage.KindLink) {
		return nil
	}
	return w.check(ctx, found, snap, lines)
}

// callMatcher is a Matcher for calls of tools, which the bytes of an agent's own file tell.
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
	bytes := storage.Object(obj)
	cwd := ""
	if c, ok := obj.(converted); ok {
		bytes = c.Raw()
		_, cwd = c.Beside()
	}
	needle := m.inRaw(cwd, header)
	if needle == nil {
		return true, nil
	}
	st, err := storage.StatUntil(ctx, bytes)
	if err != nil {
		return false, err
	}
	return w.scanner.has(ctx, bytes, st.Size, needle)
}

// scanRaw searches the bytes of the agent's file of a session, if it has one. It returns the needle for
// the session, and whether that may have it.
func (w *worker) scanRaw(ctx context.Context, f searchedFile, obj storage.Object, needle *Needle) (_ *Needle, mayHave bool, err error) {
	w.mayOutput = true
	c, isConverted := obj.(converted)
	if !isConverted {
		return needle, true, nil
	}
	raw := c.Raw()
	title, _ := c.Beside()
	st, err := raw.Stat()
	isInOutputs := false
	w.mayOutput = f.hasOutputs || err != nil || ownToken(raw, st) != f.Token
	if err == nil && w.mayOutput {
		isInOutputs, err = w.inOutputs(ctx, f.name, needle)
	}
	switch {
	case err != nil:
		return needle, false, err
	case isInOutputs:
		return needle.orOutputs(), true, nil
	case !needle.isInRaw() || needle.isIn([]byte(title)):
		return needle, true, nil
	}
	mayHave, err = w.scanner.has(ctx, raw, st.Size, needle.inRaw())
	return needle, mayHave, err
}

// scan finds the needle in a session. It returns the session's state.
func (w *worker) scan(ctx context.Context, obj storage.Object, needle *Needle) (_ storage.Token, lines []candidate, err error) {
	st, err := storage.StatUntil(ctx, obj)
	if err == nil {
		lines, err = w.scanner.find(ctx, obj, st.Size, needle)
	}
	if len(lines) > 0 && needle != nil && needle.anyLine {
		lines = everywhere
	}
	return st.Token, lines, err
}

// ownToken returns the state of a session's own file, by the state of an object with more or fewer
// records.
func ownToken(obj storage.Object, st storage.Stat) storage.Token {
	joined, ok := obj.(storage.JoinedObject)
	if ok {
		st.Size -= joined.Joined()
	}
	return st.Token
}

// converted is a session made of another file with the same JSON strings, which is searched first,
// as a conversion takes longer.
type converted interface {
	Raw() storage.Object
	// Beside returns its title and its working directory as far as they are not in the file, else "".
	Beside() (title, cwd string)
}

// check checks the entries in some lines, and the title.
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
	q, _ := matching.(*checker)
	ownTitle := header.Member("title")
	if slot != nil {
		ownTitle = slot.Member("title")
	}
	hits := hitList{owner: found, counts: w.counts}
	if line, ok := matching.Title(ownTitle, snap.HeaderTime()); ok {
		hits.add(Hit{What: TitleLabel, Time: snap.HeaderTime(), Line: line})
	}
	if q != nil {
		q.prompt.AreOff = w.counts
	}
	r := sessioncore.NewEntryReader(snap)
	entries := newestFirst(snap, lines)
	if calls, ok := matching.(*touchChecker); ok {
		entries, err = calls.callsOf(ctx, snap, entries, r.Read)
		if err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := r.Read(e)
		if err != nil {
			return err
		}
		if q != nil && w.mayOutput && snap.Role(e) == sessioncore.RoleToolResult {
			q.output = w.output(found.File, text)
		}
		hit, ok := matching.Entry(snap, e, text)
		if !ok {
			continue
		}
		hit.setEntry(snap, e)
		if !w.counts {
			hit.setRole(snap, e, text)
		}
		hits.add(hit)
		if len(hits.all) > w.s.Limit {
			break // the number beyond the limit does not matter
		}
	}
	hits.finish()
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

// hitList has the hits of a session, or only what counts them.
type hitList struct {
	owner  *FileHits
	counts bool
	all    []Hit
}

// add adds a hit.
func (l *hitList) add(hit Hit) {
	if l.counts {
		l.owner.counted = append(l.owner.counted, hit.copyKey())
		return
	}
	hit.FileHits = l.owner
	l.all = append(l.all, hit)
}

// finish gives the hits to the session. The title's place is that of its time.
func (l *hitList) finish() {
	slices.SortStableFunc(l.all, func(a, b Hit) int { return b.Time.Compare(a.Time) })
	l.owner.Hits = l.all
}

// setRole sets the role of the entry's message.
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

// newestFirst returns the entries that overlap one of the lines, the newest first.
func newestFirst(snap *sessioncore.Snapshot, lines []candidate) (entries []sessioncore.Entry) {
	next := sessioncore.Entry(0)
	for _, l := range lines {
		rest := snap.Len() - int(next)
		next += sessioncore.Entry(sort.Search(rest, func(i int) bool {
			r, _ := snap.EntryRange(next + sessioncore.Entry(i))
			return r.Offset+r.Size > l.from
		}))
		for ; int(next) < snap.Len(); next++ {
			if r, _ := snap.EntryRange(next); r.Offset >= l.to {
				break
			}
			entries = append(entries, next)
		}
	}
	slices.SortFunc(entries, snap.CompareNewest)
	return entries
}

// chunkSize is the size of a read, which fits into a core's cache with other data.
const chunkSize = 256 << 10

// firstSize is the size of the first read where only the first place matters: of a common word it has one.
const firstSize = 32 << 10

// candidate is a range of a file, from a match to the end of its line.
type candidate struct{ from, to int64 }

// maxCandidates bounds the candidates of one file. Beyond it all entries are checked.
const maxCandidates = 1 << 20

// scanner reads files and finds needles in them. It is not safe for concurrent use.
type scanner struct {
	buf []byte
	// onlyFirst says that a file is read up to the first place, as the others do not matter.
	onlyFirst bool
}

// everywhere is the place of an unknown match.
var everywhere = []candidate{{0, math.MaxInt64}}

// find returns the places of a needle in the first size bytes of a file, one a line, or everywhere.
func (s *scanner) find(ctx context.Context, file io.ReaderAt, size int64, n *Needle) (found []candidate, err error) {
	if n == nil {
		return everywhere, nil
	}
	found, err = s.findOne(ctx, file, size, n)
	if err != nil || n.or == nil {
		return found, err
	}
	others, err := s.find(ctx, file, size, n.or)
	found = append(slices.Clip(found), others...)
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.from, b.from) })
	return found, err
}

// has reports whether find finds any place.
func (s *scanner) has(ctx context.Context, file io.ReaderAt, size int64, n *Needle) (bool, error) {
	if n == nil {
		return true, nil
	}
	s.onlyFirst = true
	defer func() { s.onlyFirst = false }()
	for ; n != nil; n = n.or {
		found, err := s.findOne(ctx, file, size, n)
		if err != nil || len(found) > 0 {
			return len(found) > 0, err
		}
	}
	return false, nil
}

// findOne is find for a needle without its alternatives.
func (s *scanner) findOne(ctx context.Context, file io.ReaderAt, size int64, n *Needle) (found []candidate, err error) {
	reach := int64(n.reach())
	if most := int(chunkSize + 2*reach); len(s.buf) < most {
		s.buf = make([]byte, most)
	}
	base := int64(0)
	next := int64(0) // of the buffer, and the first unchecked offset
	step := int64(chunkSize)
	if s.onlyFirst {
		step = firstSize
	}
	for have := 0; base+int64(have) < size; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		runtime.Gosched() // for other requests
		at := base + int64(have)
		limit := size
		b := s.buf[:have+int(min(step, size-at))]
		step = chunkSize
		if got, err := file.ReadAt(b[have:], at); have+got < len(b) {
			if err == nil || err == io.EOF {
				return everywhere, nil // it was cut meanwhile, which reading it as a session detects
			}
			return nil, err
		}
		if end := base + int64(len(b)); end < size {
			limit = end - reach
		}
		found, next = n.scanBuffer(b, base, next, limit, found)
		if s.onlyFirst && len(found) > 0 {
			return found, nil
		}
		if len(found) > maxCandidates {
			return everywhere, nil
		}
		kept := max(base, next-reach)
		have = copy(s.buf, b[kept-base:])
		base = kept
	}
	if last := len(found) - 1; last >= 0 && found[last].to == 0 {
		found[last].to = size
	}
	return found, nil
}

// scanBuffer checks the offsets of a file from next up to limit, of which b has the bytes from base
// on, and appends the matches. The last one has no end if its line goes on. It returns the next
// offset.
func (n *Needle) scanBuffer(b []byte, base, next, limit int64, found []candidate) ([]candidate, int64) {
	for next < limit {
		if last := len(found) - 1; last >= 0 && found[last].to == 0 {
			end := bytes.IndexByte(b[next-base:], '\n')
			if end < 0 {
				return found, base + int64(len(b))
			}
			next += int64(end) + 1
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
