package agents

import (
	"io"
	"sort"
	"sync"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

// RecordPlace is where a record is in a file.
type RecordPlace struct {
	off, end int64 // its bytes, and the newline behind it
	line     int64 // the number of its first line
	lines    int64 // the number of its lines
	isCut    bool  // no newline follows it
}

// placeOf returns the place of a value in its file, with the newline behind it.
func placeOf(u *jsonl.Unit) RecordPlace {
	at := RecordPlace{
		off:   u.Off,
		end:   u.Off + u.Size,
		line:  u.Line,
		lines: 1,
	}
	at.lines += u.Breaks
	if u.EndsLine {
		at.end++
	} else {
		at.isCut = u.Kind != jsonl.SkippedUnit // a line that is skipped has its newline
	}
	return at
}

// subagentPart has the records of a subagent in a file, in the order of its conversation. Spans are appended;
// the first fixed ones do not change.
type subagentPart struct {
	spans []recordSpan
	fixed int
	size  int64 // of all records
	lines int64 // of all records
}

// recordSpan is a run of records that follow each other in the file.
type recordSpan struct {
	RecordPlace
	at     int64 // its offset in the part
	before int64 // lines of the part before it
}

// newlineSize is the size of the newline that a part has behind a record without one.
const newlineSize = 1

// add adds a record behind the others. It extends the last span if the record follows it in the file and no open object
// has a copy of it.
func (p *subagentPart) add(at RecordPlace) {
	size := at.end - at.off
	if at.isCut {
		size += newlineSize
	}
	var before *recordSpan // the last span, if it may change
	if len(p.spans) > p.fixed {
		before = &p.spans[len(p.spans)-1]
	}
	if before != nil && !before.isCut && before.end == at.off {
		before.end = at.end
		before.isCut = at.isCut
	} else {
		p.spans = append(p.spans, recordSpan{
			RecordPlace: at,
			at:          p.size,
			before:      p.lines,
		})
	}
	p.size += size
	p.lines += at.lines
}

// lineOf returns the number in the file of a line of the part, from 1.
func (p *subagentPart) lineOf(line int64) int64 {
	n := sort.Search(len(p.spans), func(i int) bool {
		return p.spans[i].before >= line
	})
	if n == 0 {
		return line
	}
	s := &p.spans[n-1]
	return s.line + line - s.before - 1
}

// readSome reads from the span at an offset of the part, to its end at most, and returns how much. text is not empty. The
// error is io.EOF behind the part.
func (p *subagentPart) readSome(file io.ReaderAt, text []byte, off int64) (int, error) {
	if off >= p.size {
		return 0, io.EOF
	}
	next := sort.Search(len(p.spans), func(i int) bool {
		return p.spans[i].at > off
	})
	s := &p.spans[next-1]
	from := s.off + off - s.at // in the file
	if from == s.end {         // the record has no newline in the file
		text[0] = '\n'
		return newlineSize, nil
	}
	length := min(int64(len(text)), s.end-from)
	text = text[:length]
	return len(text), storage.ReadFull(file, text, from)
}

// partObject is the open file of a session, with the records of one subagent.
type partObject struct {
	storage.Object // the file
	in             *Inside
	name, subagent string

	mu    sync.Mutex // guards the fields below
	now   subagentPart
	extra int64 // size of the part minus the size of the file
}

// Stat implements storage.Object. It shares out the growth of the file.
func (o *partObject) Stat() (storage.Stat, error) {
	now, st, err := o.in.part(o.name, o.subagent, o.Object)
	if err != nil {
		return st, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = now
	o.extra = now.size - st.Size
	st.Size = now.size
	return st, nil
}

// Joined implements storage.JoinedObject. It returns the size of the part minus the size of the file.
func (o *partObject) Joined() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.extra
}

// current returns the part at the last Stat.
func (o *partObject) current() subagentPart {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

// lineOf returns the number in the file of a line of the part.
func (o *partObject) lineOf(line int64) int64 {
	now := o.current()
	return now.lineOf(line)
}

// ReadAt implements storage.Object.
func (o *partObject) ReadAt(text []byte, off int64) (n int, err error) {
	part := o.current()
	for n < len(text) {
		rest := text[n:]
		more, err := part.readSome(o.Object, rest, off+int64(n))
		n += more
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
