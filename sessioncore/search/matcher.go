package search

import (
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// Matcher says which entries are hits. Its methods are safe for concurrent use.
type Matcher interface {
	// Key tells matchers apart: those with equal keys have equal hits.
	Key() string
	// Needle returns what a session has on the line of every hit; nil if that is not known. header reads its header.
	Needle(header func() (rawjson.Value, error)) (*Needle, error)
	// Session reports whether a session can have hits. header reads its header.
	Session(header func() (rawjson.Value, error)) (bool, error)
	// Checker returns what checks entries for one goroutine.
	Checker() Checker
}

// Checker decides about entries. It is not safe for concurrent use.
type Checker interface {
	// Entry reports whether an entry is a hit, and returns what a Hit has of it: a line for people, and the prompt.
	Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool, err error)
	// Title is Entry for a session's title in its header, which has that time.
	Title(title rawjson.Value, at time.Time) (line string, ok bool)
}

var (
	_ Matcher = (*Query)(nil)
	_ Matcher = (*Touched)(nil)
)

// Needle implements Matcher.
func (q *Query) Needle(func() (rawjson.Value, error)) (*Needle, error) { return q.needle, nil }

// Session implements Matcher: it holds the header against cwd:.
func (q *Query) Session(header func() (rawjson.Value, error)) (bool, error) {
	if q.cwd == "" {
		return true, nil
	}
	h, err := header()
	if err != nil {
		return false, err
	}
	cwd, _ := h.Member("cwd").Text()
	return isBelow(cwd, q.cwd), nil
}

// isBelow reports whether a directory is dir or below it.
func isBelow(name, dir string) bool {
	return name == dir || dir == "/" && len(name) > 0 && name[0] == '/' || len(name) > len(dir) && name[:len(dir)] == dir && name[len(dir)] == '/'
}

// Checker implements Matcher.
func (q *Query) Checker() Checker {
	longest := 0
	for _, w := range append(q.words[:len(q.words):len(q.words)], q.without...) {
		longest = max(longest, len(w.text))
	}
	return &checker{q: q, found: make([]bool, len(q.words)), overlap: longestFold * longest}
}
