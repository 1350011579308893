package codex

import (
	"bufio"
	"bytes"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// lineage detects the lines at the beginning of a session that are another rollout's, and the
// origin of all lines. They follow its session_meta and that of the other: copies with the time of
// a fork or of a subagent's begin, or lines of the chain (join.go). Such a line becomes the same
// entry with the same id and time in both, so that its cost counts once.
type lineage struct {
	*chain         // lines of other rollouts that are shown here
	metas   int64  // number of session_meta at the beginning
	copied  bool   // the next line may be another rollout's
	parent  *lines // nil if it cannot be compared
	matches int    // number of lines that are the parent's
	omitted int64  // number of the parent's lines without a copy
	ms      int64  // time of the previous line
}

// batchGap bounds the time between two lines that were copied at once, in ms. Answers take longer.
const batchGap = 1000

// place sets the origin of a record. It returns true for the session's first own one.
func (l *lineage) place(r *record, o agents.Object, line int64) (own bool) {
	if o.Member("type").Is("session_meta") && line == l.metas+1 {
		l.metas++
	}
	ms, _, timed := rawjson.ReadTimestamp(r.time)
	if line == 2 {
		l.copied = l.metas == 2 || l.chain.lines > 0
	}
	if line > 1 && l.copied {
		l.copied = l.isCopied(r, o, line, timed && ms-l.ms < batchGap)
		own = !l.copied
	}
	if timed {
		l.ms = ms
	}
	r.id = "l" + strconv.FormatInt(line+l.omitted-max(0, l.metas-1), 10)
	switch {
	case line == 1:
		r.line = 1
	case line <= l.chain.lines+1:
		r.path, r.line = l.origin(line - 2)
	default:
		r.line = line - l.chain.lines
	}
	return own
}

// isCopied reports whether a line is another rollout's, and sets the record's time to that in the
// original. soon: the line was written right after the previous one.
func (l *lineage) isCopied(r *record, o agents.Object, line int64, soon bool) bool {
	if l.chain.lines > 0 {
		return line <= l.chain.lines+1
	}
	if l.parent != nil {
		for {
			theirs, ok := l.parent.next()
			isSame := bytes.Equal(theirs.Member("type"), o.Member("type")) &&
				bytes.Equal(theirs.Member("payload"), o.Member("payload"))
			if isSame {
				r.time, l.omitted = theirs.Member("timestamp"), l.parent.read-(line-1)
				l.matches++
				return true
			}
			if !ok || !soon {
				break
			}
		}
		if l.parent = nil; l.matches > 1 {
			return false
		}
	}
	return soon
}

// isCounted reports whether the tokens of a line are the parent's, whose line was not found.
func (l *lineage) isCounted() bool { return l.copied && l.chain.lines == 0 && l.parent == nil }

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
	s.Split(func(text []byte, _ bool) (size int, line []byte, err error) { // the last line may be incomplete
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			return end + 1, text[:end], nil
		}
		return 0, nil, nil
	})
	return &lines{Scanner: s}
}

// next returns the members of the next line, none for other values. They are valid until the next
// call. ok is false at the end, or after an error.
func (l *lines) next() (o agents.Object, ok bool) {
	if !l.Scan() {
		return nil, false
	}
	l.read++
	if line := rawjson.Value(bytes.TrimSpace(l.Bytes())); rawjson.IsValidObject(line) {
		o = agents.Read(line)
	}
	return o, true
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
