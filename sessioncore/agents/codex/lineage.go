package codex

import (
	"bufio"
	"bytes"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// lineage detects the records at the beginning of a session that are another rollout's, and the
// origin of all records. They follow its session_meta and that of the other: copies with the time of
// a fork or of a subagent's begin, or lines of the chain (chain.go). Such a record becomes the same
// entry with the same id and time in both, so that its cost counts once.
type lineage struct {
	*chain          // lines of other rollouts that are shown here
	part     int    // of the chain, from 1; 0 before the first
	mark     int64  // the line of its mark
	number   int64  // of the record
	id       string // of its first entry
	line     int64  // in its file
	metas    int64  // number of session_meta at the beginning
	copied   bool   // the next record may be another rollout's
	original *lines // that rollout's, nil if it cannot be compared
	matches  int    // number of records that are the original's
	omitted  int64  // number of the original's lines without a copy
	ms       int64  // time of the previous record
}

// batchGap bounds the time between two lines that were copied at once, in ms. Answers take longer.
const batchGap = 1000

// isMark reports whether a record is the mark of the next part of the chain.
func (c *converter) isMark(r *agents.Record) bool {
	if c.part == len(c.parts) || !c.parts[c.part].isMark(r.Value) {
		return false
	}
	if c.part, c.mark = c.part+1, r.Line; c.numberOf(r.Line+1) == c.number { // the last record has no line break
		c.omitted++
	}
	c.ended = c.ended || c.part == len(c.parts) // the next lines are the session's own
	return true
}

// numberOf returns the number of the record of a line, as if all lines were the session's own.
func (l *lineage) numberOf(line int64) int64 {
	return line - markLines*int64(l.part) + l.omitted - max(0, l.metas-1)
}

// place sets the origin of a record.
func (c *converter) place(r *agents.Record) {
	time := r.Member("timestamp")
	line := r.Line - markLines*int64(c.part)
	if r.Member("type").Is("session_meta") && line == c.metas+1 {
		c.metas++
	}
	if time.Missing() {
		time = c.began
	}
	c.Path, c.line = "", r.Line
	switch {
	case c.part > 0:
		c.Path, c.line = c.parts[c.part-1].path, r.Line-c.mark+1
	case line == 1, line == 2 && c.metas == 2, c.copied:
		ms, _, timed := rawjson.ReadTimestamp(time)
		if line > 1 {
			time, c.copied = c.copyOf(r, time, line, timed && ms-c.ms < batchGap)
			c.ended = c.ended || !c.copied // the next lines are the session's own
		}
		if timed {
			c.ms = ms
		}
	}
	c.number = c.numberOf(r.Line)
	c.id = "l" + strconv.FormatInt(c.number, 10)
	c.From(c.id, time, c.line)
}

// copyOf reports whether a record is another rollout's, and returns its time there. soon: the line
// was written right after the previous one.
func (l *lineage) copyOf(record *agents.Record, time rawjson.Value, line int64, soon bool) (rawjson.Value, bool) {
	for l.original != nil {
		theirs, ok := l.original.next()
		if bytes.Equal(theirs.Member("type"), record.Member("type")) &&
			bytes.Equal(theirs.Member("payload"), record.Member("payload")) {
			l.matches++
			l.omitted = l.original.read - (line - 1)
			return theirs.Member("timestamp"), true
		}
		if !ok || !soon {
			if l.original = nil; l.matches > 1 {
				return time, false
			}
		}
	}
	return time, soon
}

// isCounted reports whether the tokens of a record are those of another rollout's that was not found.
func (l *lineage) isCounted() bool { return l.copied && l.original == nil }

// lines reads the lines of a file in order.
type lines struct {
	*bufio.Scanner
	read int64 // number of lines read
}

const (
	// readAhead is the size of a read, and maxCompared bounds a line to compare.
	readAhead   = 256 << 10
	maxCompared = 16 << 20
)

func newLines(open func() (storage.Object, error)) *lines {
	s := bufio.NewScanner(&reopened{open: open})
	s.Buffer(make([]byte, readAhead), maxCompared)
	return &lines{Scanner: s}
}

// next returns the members of the next line, none for other values. They are valid until the next
// call. ok is false at the end, or after an error.
func (l *lines) next() (o agents.Object, ok bool) {
	for l.Scan() {
		l.read++
		line := rawjson.Value(bytes.TrimSpace(l.Bytes()))
		switch {
		case bytes.HasPrefix(line, []byte(markPrefix)): // of a chain
			l.read -= markLines
		case rawjson.IsValidObject(line):
			return agents.Read(line), true
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
