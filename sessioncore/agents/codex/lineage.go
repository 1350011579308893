package codex

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// lineage detects the records of other rollouts in a session, and the origin of all records: copies
// at the beginning, or lines of the chain (chain.go). Such a record becomes the same entry with the
// same id and time in both, so that its cost counts once.
type lineage struct {
	*chain        // lines of other rollouts that are shown here
	copies        // in the first one of the chain, or in the session's own rollout
	part   int    // of the chain, from 1; 0 before the first
	mark   int64  // the line of its mark
	number int64  // of the record
	id     string // of its first entry
	line   int64  // in its file
}

// copies detects the records at the beginning of a rollout that are another's, which may have copies
// too. They follow both session_meta, with the time of a fork or of a subagent's begin.
type copies struct {
	metas    int64              // number of session_meta at the beginning
	copied   bool               // the next record may be another rollout's
	open     func() *lineReader // opens the original; nil after that
	original *lineReader        // nil if it cannot be compared
	matches  int                // number of records that are the original's
	omitted  int64              // number of the original's lines without a copy
	ms       int64              // time of the previous record
}

// batchGap bounds the time between two lines that were copied at once, in ms. Answers take longer.
const batchGap = 1000

// isMark reports whether a record is the mark of the next part of the chain. Then the part begins.
func (c *converter) isMark(r *agents.Record) bool {
	if c.part == len(c.parts) {
		return false
	}
	mark := strings.TrimSpace(c.parts[c.part].mark)
	if string(r.Value) != mark {
		return false
	}
	line := r.Line + 1 - markLines*int64(c.part+1) // of the next record, without marks
	c.part++
	c.mark = r.Line
	if c.numberOf(line) == c.number { // the last record has no line break
		c.omitted++
	}
	if c.part == len(c.parts) {
		c.ended = true // the next lines are the session's own
	}
	return true
}

// numberOf returns the number of the record of a line, without marks: its number in the original.
func (c *copies) numberOf(line int64) int64 { return line + c.omitted - max(0, c.metas-1) }

// place sets the origin of a record: its id, file and line, for the Builder too. Copies have those of the original, but
// for the line.
func (c *converter) place(r *agents.Record) {
	line := r.Line - markLines*int64(c.part)
	time := r.Member("timestamp")
	wasCopied := c.copied
	if c.part < 2 {
		time = c.timeOf(r.Object, line)
	} else {
		c.copied = false // only the first part of the chain begins with copies
	}
	if wasCopied && !c.copied {
		c.ended = true
	}
	if time.Missing() {
		time = c.began
	}
	c.Path = ""
	c.line = r.Line
	if c.part > 0 {
		c.Path = c.parts[c.part-1].path
		c.line = r.Line - c.mark + 1
	}
	c.number = c.numberOf(line)
	c.id = "l" + strconv.FormatInt(c.number, 10)
	copyOf, copyTime := agents.EntryIn(r.Object)
	if copyOf != "" {
		c.id = copyOf
	}
	if copyTime.IsString() {
		time = copyTime
	}
	c.From(c.id, time, c.line)
}

// timeOf returns the time of the record in a line: the original's time, if it is a copy. c.copied says so then, and that
// the next record may be one. A rollout with copies is:
//
//	1  session_meta, its own
//	2  session_meta of the original
//	3  copies of the original's next records, written at once, and so on
//	n  its own records
func (c *copies) timeOf(record agents.Object, line int64) rawjson.Value {
	time := record.Member("timestamp")
	isMeta := record.Member("type").Is("session_meta")
	if isMeta && line == c.metas+1 {
		c.metas++
	}
	isSecondMeta := line == 2 && c.metas == 2
	if line != 1 && !isSecondMeta && !c.copied {
		return time
	}
	ms, _, isTimed := rawjson.ReadTimestamp(time)
	if line > 1 {
		isSoon := isTimed && ms-c.ms < batchGap
		time, c.copied = c.copyOf(record, time, line, isSoon)
	}
	if isTimed {
		c.ms = ms
	}
	return time
}

// copyOf reports whether the record in a line is another rollout's, and returns its time there, else or if that is not
// known its own. isSoon says that the line was written right after the previous one: then the original may have lines
// without a copy, and where no original can be compared the record counts as a copy.
func (c *copies) copyOf(record agents.Object, time rawjson.Value, line int64, isSoon bool) (rawjson.Value, bool) {
	if c.open != nil {
		c.original = c.open()
		c.open = nil
	}
	for c.original != nil {
		theirs, hasMore := c.original.next()
		if isSameRecord(theirs, record) {
			c.matches++
			c.omitted += c.original.numberOf(c.original.read) - c.numberOf(line)
			return c.original.time, true
		}
		if hasMore && isSoon {
			continue
		}
		c.original = nil
		isOriginal := c.matches > 1 // more than its session_meta is the same
		if isOriginal {
			return time, false
		}
	}
	return time, isSoon
}

// isSameRecord reports whether two records of two rollouts have one type and one payload.
func isSameRecord(theirs, own agents.Object) bool {
	isSameType := bytes.Equal(theirs.Member("type"), own.Member("type"))
	return isSameType && bytes.Equal(theirs.Member("payload"), own.Member("payload"))
}

// isCounted reports whether another session has the tokens of a record: of a rollout that was not
// found, or in a circle.
func (l *lineage) isCounted() bool {
	isOfMissing := l.copied && l.original == nil
	isInCircle := l.isCircle && l.part > 0 && l.part < len(l.parts)
	return isOfMissing || isInCircle
}

// lineReader reads the lines of a file in order.
type lineReader struct {
	*bufio.Scanner
	copies
	read  int64         // number of lines read
	marks int           // number of marks of a chain among them
	time  rawjson.Value // of the last record
}

const (
	// readAhead is the size of a read, and maxCompared bounds a line to compare.
	readAhead   = 256 << 10
	maxCompared = 16 << 20
)

// newLines returns a reader of a rollout, opened at the first line. original returns the lines that it may have
// copies of.
func newLines(open func() (storage.Object, error), original func() *lineReader) *lineReader {
	s := bufio.NewScanner(&reopened{open: open})
	s.Buffer(make([]byte, readAhead), maxCompared)
	return &lineReader{Scanner: s, copies: copies{open: original}}
}

// next returns the members of the next line, none for other values. They are valid until the next
// call. ok is false at the end, or after an error.
func (l *lineReader) next() (o agents.Object, ok bool) {
	for l.Scan() {
		l.read++
		line := rawjson.Value(bytes.TrimSpace(l.Bytes()))
		switch {
		case bytes.HasPrefix(line, []byte(markPrefix)): // of a chain
			l.read -= markLines
			l.marks++
		case rawjson.IsValidObject(line):
			o = agents.Read(line)
			l.time = o.Member("timestamp")
			if l.marks < 2 {
				l.time = l.timeOf(o, l.read)
			}
			return o, true
		case len(line) > 0:
			return nil, true
		}
	}
	return nil, false
}

// reopened is an io.Reader of a file that is open only while it is read.
type reopened struct {
	open func() (storage.Object, error)
	at   int64 // offset of the next read
}

// Read implements io.Reader.
func (r *reopened) Read(p []byte) (n int, err error) {
	obj, err := r.open()
	if err != nil {
		return 0, err
	}
	defer obj.Close()
	n, err = obj.ReadAt(p, r.at)
	r.at += int64(n)
	return n, err
}
