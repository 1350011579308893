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
	// MaxPlaces is the maximum number of places in one file. It bounds the memory for a file that is full of them.
	MaxPlaces = 20_000
	// maxLine is the longest line that is searched, in bytes; the model reads no longer ones either.
	maxLine = 128 << 20
	// maxBlock is how much text that is not JSON is searched at once, in bytes, so that secrets of several lines are
	// found.
	maxBlock = 1 << 20
	// chunkSize is how much is read at once, in bytes.
	chunkSize = 256 << 10
)

// Unsearched is the kind of a line that is too long to be searched.
const Unsearched = "unsearched"

// ErrTooMany means that a file has more than MaxPlaces places.
var ErrTooMany = errors.New("more secrets than can be listed")

// Place is where a secret is in a file.
type Place struct {
	Offset, Size int64 // in the file, in bytes; of the text as it is written there
	Line         int64 // number, from 1
	Kind         string
	Where        string // JSON pointer into the line, "" if it is no JSON
}

// Hide overwrites what places cover in p, which is the part of the file at off. Line breaks stay: a secret that spans
// lines is in text that is no JSON, and lines go on being what they are.
func Hide(p []byte, off int64, places []Place) {
	first := sort.Search(len(places), func(i int) bool { return places[i].Offset+places[i].Size > off })
	for _, place := range places[first:] {
		from, to := max(place.Offset-off, 0), min(place.Offset+place.Size-off, int64(len(p)))
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

// Scan is what was found in the beginning of a file.
type Scan struct {
	Places []Place // by offset, not overlapping
	// Rules are what secrets are known by, nil for the known ones. They are set before the first Extend.
	Rules *Rules
	// Pointers says that places have a JSON pointer. It is set before the first Extend.
	Pointers bool
	values   values
	next     int64 // up to here nothing changes if the file grows
	lines    int64 // up to next
}

// Next returns up to where what was found stays as it is if the file only grows, apart from secrets that become known.
func (s *Scan) Next() int64 { return s.next }

// Extend searches what was added to a file, which has now size bytes. Secrets that it finds are looked for in the whole
// file. After an error the Scan must not be used any more; after ErrTooMany it has the first MaxPlaces, or some of them.
func (s *Scan) Extend(ctx context.Context, file io.ReaderAt, size int64) error {
	from := pass{Scan: s, at: s.next, line: s.lines, byRules: true}
	again := pass{Scan: s, at: from.at, line: from.line}
	at, _ := slices.BinarySearchFunc(s.Places, s.next, func(p Place, off int64) int { return cmp.Compare(p.Offset, off) })
	s.Places = s.Places[:at]
	if err := from.run(ctx, file, size); err != nil {
		return err
	}
	if from.isNew {
		again.at, again.line = 0, 0
	}
	if s.values.words != nil {
		if err := again.run(ctx, file, size); err != nil {
			return err
		}
	}
	s.Places = joined(s.Places)
	s.next, s.lines = from.safe, from.safeLine
	return nil
}

// joined sorts places and joins those that overlap.
func joined(places []Place) []Place {
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(a.Offset, b.Offset) })
	out := places[:0]
	for _, p := range places {
		if n := len(out); n > 0 && p.Offset < out[n-1].Offset+out[n-1].Size {
			last := &out[n-1]
			if slices.Contains(vague, last.Kind) {
				last.Kind = p.Kind
			}
			last.Size = max(last.Size, p.Offset+p.Size-last.Offset)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// Clean returns text with what is or holds a secret replaced, as far as is known until now.
func (s *Scan) Clean(text string) string {
	known := s.rules().In(text)
	s.values.find([]byte(text), func(match) { known = true })
	if known {
		return "*"
	}
	return text
}

func (s *Scan) rules() *Rules {
	if s.Rules == nil {
		return Known()
	}
	return s.Rules
}

// In reports whether a rule finds a secret in text.
func (set *Rules) In(text string) (found bool) {
	_ = set.find(context.Background(), append([]byte{'\n'}, text...), func(match) { found = true })
	return found
}

// pass is one reading of a file, by the rules or for known secrets.
type pass struct {
	*Scan
	byRules bool
	isNew   bool // a secret became known
	at      int64
	line    int64 // number of lines before at

	text, buf []byte
	readable  readable // to which the rules are applied
	block     []byte   // lines that are not JSON
	blockAt   int64
	blockLine int64
	safe      int64 // Scan.next after this pass
	safeLine  int64
}

func (p *pass) run(ctx context.Context, file io.ReaderAt, size int64) error {
	in := bufio.NewReaderSize(io.NewSectionReader(file, p.at, size-p.at), chunkSize)
	p.safe, p.safeLine = p.at, p.line
	for ctx.Err() == nil {
		line, length, err := p.readLine(in)
		if err != nil && err != io.EOF {
			return err
		}
		if length == 0 {
			break
		}
		if err := p.searchLine(ctx, line, length); err != nil {
			return err
		}
		p.at += length
		p.line++
		if err == nil && len(p.block) == 0 {
			p.safe, p.safeLine = p.at, p.line
		}
		if len(p.Places) > 2*MaxPlaces { // a place can be found twice
			if p.Places = joined(p.Places); len(p.Places) > MaxPlaces {
				return p.tooMany()
			}
		}
	}
	if err := p.searchBlock(ctx); err != nil {
		return err
	}
	if p.Places = joined(p.Places); len(p.Places) > MaxPlaces {
		return p.tooMany()
	}
	return ctx.Err()
}

func (p *pass) tooMany() error {
	p.Places = p.Places[:MaxPlaces]
	return ErrTooMany
}

// readLine returns the next line, and its length with the newline. The line is nil if it is too long. The error is io.EOF
// if it has no newline.
func (p *pass) readLine(in *bufio.Reader) (line []byte, length int64, err error) {
	p.text = p.text[:0]
	for {
		part, err := in.ReadSlice('\n')
		length += int64(len(part))
		if length <= maxLine {
			p.text = append(p.text, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if length > maxLine {
			return nil, length, err
		}
		return p.text, length, err
	}
}

func (p *pass) searchLine(ctx context.Context, line []byte, length int64) (err error) {
	if line == nil {
		p.Places = append(p.Places, Place{Offset: p.at, Size: length - 1, Line: p.line + 1, Kind: Unsearched})
		return p.searchBlock(ctx)
	}
	eachString(line, func(s jsonString, at place) {
		if err == nil {
			err = p.searchString(ctx, line, s, at)
		}
	})
	whole := isWhole(line)
	if err == nil && (whole || len(p.block) > maxBlock) {
		err = p.searchBlock(ctx)
	}
	if err != nil || whole {
		return err
	}
	if len(p.block) == 0 {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		p.block, p.blockAt, p.blockLine = append(p.block, '\n'), p.at, p.line
	}
	p.block = append(p.block, line...)
	return nil
}

// searchString searches the text of a string. Before it stands the key that it belongs to, as in a file of settings,
// since many rules know secrets by that.
func (p *pass) searchString(ctx context.Context, line []byte, s jsonString, at place) error {
	body := line[s.start:s.end]
	p.buf = append(p.buf[:0], '"')
	if !s.isKey {
		p.buf = append(decode(p.buf, at.key()), `": "`...)
	}
	before := len(p.buf)
	p.buf = decode(p.buf, body)
	end := len(p.buf)
	p.buf = append(p.buf, '"')
	return p.search(ctx, p.buf, before, end, func(found []match) {
		pointer := ""
		if p.Pointers && s.isKey {
			pointer = at[:len(at)-1].pointer(p.Clean) + "/*"
		} else if p.Pointers {
			pointer = at.pointer(p.Clean)
		}
		seen := encodedAt{}
		for _, m := range found {
			first, _ := seen.seek(body, m.start-before)
			from := seen
			_, last := from.seek(body, m.end-1-before)
			p.Places = append(p.Places, Place{
				Offset: p.at + int64(s.start+first), Size: int64(last - first), Line: p.line + 1, Kind: m.kind, Where: pointer,
			})
		}
	})
}

// searchBlock searches the lines that are not JSON.
func (p *pass) searchBlock(ctx context.Context) error {
	if len(p.block) == 0 {
		return nil
	}
	err := p.search(ctx, p.block, 1, len(p.block), func(found []match) {
		line, at := p.blockLine+1, 1
		for _, m := range found {
			line += int64(bytes.Count(p.block[at:m.start], []byte{'\n'}))
			at = m.start
			p.Places = append(p.Places, Place{
				Offset: p.blockAt + int64(m.start-1), Size: int64(m.end - m.start), Line: line, Kind: m.kind,
			})
		}
	})
	p.block = p.block[:0]
	return err
}

// search calls found with what is found in text[from:to], in order, if there is anything.
func (p *pass) search(ctx context.Context, text []byte, from, to int, found func([]match)) error {
	var matches []match
	take := func(m match) {
		m.start, m.end = max(m.start, from), min(m.end, to)
		if m.start < m.end {
			matches = append(matches, m)
		}
	}
	if !p.byRules {
		p.values.find(text[:to], take)
	} else if err := p.searchRules(ctx, text, take); err != nil {
		return err
	}
	if len(matches) == 0 {
		return nil
	}
	slices.SortFunc(matches, func(a, b match) int { return cmp.Compare(a.start, b.start) })
	if p.byRules {
		for _, m := range matches {
			p.isNew = p.values.add(text[m.start:m.end], m.kind) || p.isNew
		}
	}
	found(matches)
	return nil
}

const (
	// besideBefore and besideAfter bound how far from where text differs that is read joined the
	// rules are applied to it as it reads then, in bytes.
	besideBefore, besideAfter = 256, 1024
)

// searchRules applies the rules to text as it reads, and, near where that differs, as it reads
// joined.
func (p *pass) searchRules(ctx context.Context, text []byte, take func(match)) error {
	differs := p.readable.read(text, false)
	err := p.searchRead(ctx, 0, take)
	for i := 0; i < len(differs) && err == nil; {
		from, to := max(differs[i]-besideBefore, 0), 0
		for ; i < len(differs) && (to == 0 || differs[i]-besideBefore < to); i++ {
			to = min(differs[i]+besideAfter, len(text))
		}
		p.readable.read(text[from:to], true)
		err = p.searchRead(ctx, from, take)
	}
	return err
}

// searchRead applies the rules to p.readable, which begins at from.
func (p *pass) searchRead(ctx context.Context, from int, take func(match)) error {
	return p.rules().find(ctx, p.readable.text, func(m match) {
		m.start, m.end = from+p.readable.origin(m.start), from+p.readable.origin(m.end)
		take(m)
	})
}
