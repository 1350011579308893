package secrets

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sort"
)

const (
	// MaxPlaces bounds the places listed of one file, and so the memory for a file full of secrets.
	MaxPlaces = 20_000
	// maxLine is the longest line that is searched, in bytes, as in jsonl.
	maxLine = 128 << 20
	// maxBlock bounds the text outside JSON that is searched at once, in bytes. Lines are joined so
	// that secrets of several lines are found.
	maxBlock  = 1 << 20
	chunkSize = 256 << 10 // size of a read, in bytes
)

// Unsearched is the kind of a place that is a line longer than maxLine.
const Unsearched = "unsearched"

// errTooMany means that a file has more than MaxPlaces places.
var errTooMany = errors.New("more secrets than can be listed")

// IsTooMany reports whether an error means that a file has more than MaxPlaces places.
func IsTooMany(err error) bool { return errors.Is(err, errTooMany) }

// SecretPlace is the place of a secret in a file.
type SecretPlace struct {
	Offset, Size int64 // in the file, in bytes; of the text as it is written there
	Line         int64 // number, from 1
	Kind         string
	Where        string // JSON pointer into the line, "" if it is no JSON
}

// Hide overwrites the places in p, the part of the file at off, with asterisks. It keeps newlines,
// as a secret outside JSON can span lines. The places are in the order of offsets and do not overlap.
func Hide(p []byte, off int64, places []SecretPlace) {
	first := sort.Search(len(places), func(i int) bool {
		return places[i].Offset+places[i].Size > off
	})
	for _, place := range places[first:] {
		from := max(place.Offset-off, 0)
		to := min(place.Offset+place.Size-off, int64(len(p)))
		if from >= int64(len(p)) {
			return
		}
		for i := from; i < to; i++ {
			if p[i] != '\n' {
				p[i] = '*'
			}
		}
	}
}

// Scan holds the secrets in the beginning of a file. Set Rules and Pointers before Extend.
type Scan struct {
	Places   []SecretPlace // by offset, not overlapping
	Rules    *Rules        // nil for the known ones
	Pointers bool          // give places a JSON pointer
	values   values
	next     int64 // a growing file keeps its places before this offset
	lines    int64 // number of lines before next
}

// Next returns the offset before which growth changes no places, except by new secrets.
func (s *Scan) Next() int64 { return s.next }

// Extend searches the growth of a file, which has now size bytes, by the rules, and then for all secrets that were
// found so far: the growth, or the whole file if a secret is new. After an error the Scan must not be used; after
// IsTooMany it has up to MaxPlaces places.
func (s *Scan) Extend(ctx context.Context, file io.ReaderAt, size int64) error {
	byRules := pass{
		Scan:    s,
		at:      s.next,
		line:    s.lines,
		byRules: true,
	}
	byValues := pass{Scan: s, at: s.next, line: s.lines}
	s.Places = placesBefore(s.Places, s.next) // the others are found once more
	err := byRules.run(ctx, file, size)
	if err != nil {
		return err
	}
	if byRules.isNew {
		byValues.at = 0
		byValues.line = 0
	}
	if s.values.words != nil {
		err := byValues.run(ctx, file, size)
		if err != nil {
			return err
		}
	}
	s.Places = joined(s.Places)
	s.next = byRules.safe
	s.lines = byRules.safeLine
	return nil
}

// joined sorts places, in place, and merges those that overlap. Of their kinds it takes the first that is not
// vague.
func joined(places []SecretPlace) []SecretPlace {
	slices.SortStableFunc(places, func(a, b SecretPlace) int {
		return cmp.Compare(a.Offset, b.Offset)
	})
	out := places[:0]
	for _, p := range places {
		if len(out) == 0 {
			out = append(out, p)
			continue
		}
		last := &out[len(out)-1]
		if p.Offset >= last.Offset+last.Size {
			out = append(out, p)
			continue
		}
		if slices.Contains(vague, last.Kind) {
			last.Kind = p.Kind
		}
		last.Size = max(last.Size, p.Offset+p.Size-last.Offset)
	}
	return out
}

// Clean returns text, or "*" if it is or holds a secret that is known so far.
func (s *Scan) Clean(text string) string {
	known := s.rules().In(text)
	s.values.find([]byte(text), func(match) {
		known = true
	})
	if known {
		return "*"
	}
	return text
}

// rules returns Rules, or the known ones.
func (s *Scan) rules() *Rules {
	if s.Rules == nil {
		return Known()
	}
	return s.Rules
}

// In reports whether text has a secret.
func (set *Rules) In(text string) (found bool) {
	afterNewline := append([]byte{'\n'}, text...) // find needs a byte before the text
	_ = set.find(context.Background(), afterNewline, func(match) {
		found = true
	})
	return found
}

// pass is one reading of a file, by the rules or for known secrets. It adds to the places and the values of its
// Scan.
type pass struct {
	*Scan
	byRules bool
	isNew   bool  // the pass found a new secret
	at      int64 // the offset of the line that is searched
	line    int64 // number of lines before at

	text      []byte   // the memory of the line
	buf       []byte   // the memory of a string after its key
	readable  readable // the text for the rules
	block     []byte   // lines that are not JSON, behind a newline
	blockAt   int64    // their offset in the file
	blockLine int64    // the number of lines before them
	safe      int64    // Scan.next after this pass
	safeLine  int64    // Scan.lines after this pass
}

// run searches the lines of a file from p.at on, up to size.
func (p *pass) run(ctx context.Context, file io.ReaderAt, size int64) error {
	part := io.NewSectionReader(file, p.at, size-p.at)
	in := bufio.NewReaderSize(part, chunkSize)
	p.safe = p.at
	p.safeLine = p.line
	for ctx.Err() == nil {
		line, length, err := p.readLine(in)
		if err != nil && err != io.EOF {
			return err
		}
		if length == 0 {
			break
		}
		failed := p.searchLine(ctx, line, length)
		if failed != nil {
			return failed
		}
		p.at += length
		p.line++
		isComplete := err == nil // the line has a newline
		if isComplete && len(p.block) == 0 {
			p.safe = p.at
			p.safeLine = p.line
		}
		if len(p.Places) > 2*MaxPlaces { // a place can be found twice
			err := p.join()
			if err != nil {
				return err
			}
		}
	}
	err := p.searchBlock(ctx)
	if err != nil {
		return err
	}
	err = p.join()
	if err != nil {
		return err
	}
	return ctx.Err()
}

// join merges the places. If there are too many, it keeps the first MaxPlaces.
func (p *pass) join() error {
	p.Places = joined(p.Places)
	if len(p.Places) > MaxPlaces {
		p.Places = p.Places[:MaxPlaces]
		return errTooMany
	}
	return nil
}

// readLine returns the next line and its length with the newline. The line is nil if it is longer
// than maxLine. The error is io.EOF if it has no newline.
func (p *pass) readLine(in *bufio.Reader) (line []byte, length int64, err error) {
	p.text = p.text[:0]
	for {
		part, err := in.ReadSlice('\n')
		length += int64(len(part))
		if length <= maxLine {
			p.text = append(p.text, part...)
		}
		if err == bufio.ErrBufferFull { // the line goes on
			continue
		}
		if length > maxLine {
			return nil, length, err
		}
		return p.text, length, err
	}
}

// searchLine searches the strings of a line. A line that is no JSON by itself is also kept for searchBlock, with the
// lines after it up to the next one that is. line is nil if it is too long. length is the line's with its newline.
func (p *pass) searchLine(ctx context.Context, line []byte, length int64) error {
	if line == nil {
		p.Places = append(p.Places, SecretPlace{
			Offset: p.at,
			Size:   length - 1,
			Line:   p.line + 1,
			Kind:   Unsearched,
		})
		return p.searchBlock(ctx)
	}
	var failed error
	eachString(line, func(s jsonString, at stringPlace) {
		if failed == nil {
			failed = p.searchString(ctx, line, s, at)
		}
	})
	if failed != nil {
		return failed
	}
	if isWhole(line) {
		return p.searchBlock(ctx)
	}
	if len(p.block) > maxBlock {
		err := p.searchBlock(ctx)
		if err != nil {
			return err
		}
	}
	p.addToBlock(line)
	return nil
}

// addToBlock adds a line to the block. No block begins with a blank line.
func (p *pass) addToBlock(line []byte) {
	if len(p.block) == 0 {
		isBlank := len(bytes.TrimSpace(line)) == 0
		if isBlank {
			return
		}
		p.block = append(p.block, '\n') // search needs a byte before the text
		p.blockAt = p.at
		p.blockLine = p.line
	}
	p.block = append(p.block, line...)
}

// searchString searches the text of a string of a line after its key, as in a settings file, since many rules
// know a secret by its key: of {"token":"abc"} it searches "token": "abc". It adds the places of the secrets.
func (p *pass) searchString(ctx context.Context, line []byte, s jsonString, at stringPlace) error {
	body := line[s.start:s.end]
	p.buf = append(p.buf[:0], '"')
	if !s.isKey {
		p.buf = decode(p.buf, at.key())
		p.buf = append(p.buf, `": "`...)
	}
	before := len(p.buf)
	p.buf = decode(p.buf, body)
	end := len(p.buf)
	p.buf = append(p.buf, '"')
	return p.search(ctx, p.buf, before, end, func(found []match) {
		pointer := p.pointerOf(s, at)
		position := encodedAt{}
		for _, m := range found {
			first, _ := position.seek(body, m.start-before)
			last := position // the next secret may begin within this one
			_, end := last.seek(body, m.end-1-before)
			p.Places = append(p.Places, SecretPlace{
				Offset: p.at + int64(s.start+first),
				Size:   int64(end - first),
				Line:   p.line + 1,
				Kind:   m.kind,
				Where:  pointer,
			})
		}
	})
}

// pointerOf returns the JSON pointer of a string, "" if none is wanted. The pointer of a key is the one of its
// object, and "/*".
func (p *pass) pointerOf(s jsonString, at stringPlace) string {
	if !p.Pointers {
		return ""
	}
	if s.isKey {
		return at[:len(at)-1].pointer(p.Clean) + "/*"
	}
	return at.pointer(p.Clean)
}

// searchBlock searches the lines that are not JSON, if there are any, adds the places of their secrets, and empties
// the block.
func (p *pass) searchBlock(ctx context.Context) error {
	if len(p.block) == 0 {
		return nil
	}
	const begin = 1 // behind the newline before the text
	err := p.search(ctx, p.block, begin, len(p.block), func(found []match) {
		line := p.blockLine + 1
		counted := begin // the newlines before it
		for _, m := range found {
			newlines := bytes.Count(p.block[counted:m.start], []byte{'\n'})
			line += int64(newlines)
			counted = m.start
			p.Places = append(p.Places, SecretPlace{
				Offset: p.blockAt + int64(m.start-begin),
				Size:   int64(m.end - m.start),
				Line:   line,
				Kind:   m.kind,
			})
		}
	})
	p.block = p.block[:0]
	return err
}

// search calls found with the secrets in text[from:to], sorted, if there are any. It cuts those that begin before
// from, or end behind to. By the rules it also adds them to the values.
func (p *pass) search(ctx context.Context, text []byte, from, to int, found func([]match)) error {
	var matches []match
	add := func(m match) {
		m.start = max(m.start, from)
		m.end = min(m.end, to)
		if m.start < m.end {
			matches = append(matches, m)
		}
	}
	if p.byRules {
		err := p.searchRules(ctx, text, add)
		if err != nil {
			return err
		}
	} else {
		p.values.find(text[:to], add)
	}
	if len(matches) == 0 {
		return nil
	}
	slices.SortFunc(matches, func(a, b match) int {
		return cmp.Compare(a.start, b.start)
	})
	if p.byRules {
		p.addValues(text, matches)
	}
	found(matches)
	return nil
}

// addValues adds the secrets of matches to those that are searched for in the whole file, and sets isNew if one of
// them is new.
func (p *pass) addValues(text []byte, matches []match) {
	for _, m := range matches {
		isNew := p.values.add(text[m.start:m.end], m.kind)
		if isNew {
			p.isNew = true
		}
	}
}

// joinedBefore and joinedAfter bound in bytes the text around a difference that is read joined.
const joinedBefore, joinedAfter = 256, 1024

// searchRules applies the rules to the readable text and, near differences, to the joined one; see readable.read.
// The matches that it calls found with are places in text.
func (p *pass) searchRules(ctx context.Context, text []byte, found func(match)) error {
	differs := p.readable.read(text, false)
	err := p.searchReadable(ctx, 0, found)
	if err != nil {
		return err
	}
	for len(differs) > 0 {
		var from, to int
		from, to, differs = joinedRange(differs, len(text))
		p.readable.read(text[from:to], true)
		err = p.searchReadable(ctx, from, found)
		if err != nil {
			return err
		}
	}
	return nil
}

// joinedRange returns the range of a text of size bytes around the first differences, as many as lie close to each
// other, and the rest of the differences. There is at least one, and they ascend.
func joinedRange(differs []int, size int) (from, to int, rest []int) {
	from = max(differs[0]-joinedBefore, 0)
	to = min(differs[0]+joinedAfter, size)
	rest = differs[1:]
	for len(rest) > 0 && rest[0]-joinedBefore < to {
		to = min(rest[0]+joinedAfter, size)
		rest = rest[1:]
	}
	return from, to, rest
}

// searchReadable applies the rules to p.readable. Its original begins at from.
func (p *pass) searchReadable(ctx context.Context, from int, found func(match)) error {
	return p.rules().find(ctx, p.readable.text, func(m match) {
		m.start = from + p.readable.origin(m.start)
		m.end = from + p.readable.origin(m.end)
		found(m)
	})
}
