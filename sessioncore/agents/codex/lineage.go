package codex

import (
	"bytes"
	"io"
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

// lineage tells which lines at the beginning of a session are of another rollout, and where all are from. A rollout has them
// after its own session_meta and that of the other: because the program wrote them again when it was forked or a subagent
// was begun, at that moment's time; or because they are shown as if it had (join.go).
//
// Such a line becomes the same entry here and there, with the same id and the same time: what they cost counts once.
type lineage struct {
	*chain        // lines that are shown as if they were here
	metas  int64  // session_meta at the beginning
	copied bool   // the next line may be another rollout's
	parent *lines // nil if it cannot be compared
	equal  int    // lines that were found to be the parent's
	left   int64  // lines of the parent that were left out
	ms     int64  // time of the line before
}

// batchGap is how long after one line the next one was written, in ms, if both were copied at once. The model takes longer
// for an answer.
const batchGap = 1000

// place says where a record is from. It returns true for the first one that is the session's own after others that are not.
func (l *lineage) place(r *record, o foreign.Object, line int64) (own bool) {
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
	r.id = "l" + strconv.FormatInt(line+l.left-max(0, l.metas-1), 10)
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

// isCopied reports whether a line is another rollout's, and gives the record the time that it has there. soon is set if it was
// written right after the one before.
func (l *lineage) isCopied(r *record, o foreign.Object, line int64, soon bool) bool {
	if l.chain.lines > 0 {
		return line <= l.chain.lines+1
	}
	if l.parent != nil {
		for {
			theirs, ok := l.parent.next()
			if bytes.Equal(theirs.Member("type"), o.Member("type")) && bytes.Equal(theirs.Member("payload"), o.Member("payload")) {
				r.time, l.left = theirs.Member("timestamp"), l.parent.read-(line-1)
				l.equal++
				return true
			}
			if !ok || !soon {
				break
			}
		}
		if l.parent = nil; l.equal > 1 {
			return false
		}
	}
	return soon
}

// alreadyCounted reports whether the tokens of a line are the parent's, whose line was not found.
func (l *lineage) alreadyCounted() bool { return l.copied && l.chain.lines == 0 && l.parent == nil }

// lines reads the lines of a file one after the other, and keeps no file open meanwhile.
type lines struct {
	open func() (storage.Object, error)
	at   int64  // offset of what is read next
	read int64  // lines
	text []byte // read ahead
}

const (
	// readAhead is how much is read at once, and maxCompared how long a line may be to be compared.
	readAhead   = 256 << 10
	maxCompared = 16 << 20
)

// next returns the members of the next line, none if it is no object. They are valid until the next call. ok is false at the
// end, or where the file cannot be read on.
func (l *lines) next() (o foreign.Object, ok bool) {
	for {
		if end := bytes.IndexByte(l.text, '\n'); end >= 0 {
			line := rawjson.Value(bytes.TrimSpace(l.text[:end]))
			l.text = l.text[end+1:]
			l.read++
			if rawjson.IsValidObject(line) {
				o = foreign.Read(line)
			}
			return o, true
		}
		if len(l.text) >= maxCompared || l.more() != nil {
			return nil, false
		}
	}
}

// more reads on.
func (l *lines) more() error {
	obj, err := l.open()
	if err != nil {
		return err
	}
	defer obj.Close()
	have := len(l.text)
	text := append(slices.Clip(l.text), make([]byte, max(readAhead, have))...)
	n, err := obj.ReadAt(text[have:], l.at)
	l.text = text[:have+n]
	l.at += int64(n)
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}
