package search

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
)

// Touched is an immutable Matcher for the calls of tools that name a file, or a path below a
// directory, in their arguments or results (docs/design.md section 5, by-file/).
type Touched struct {
	path    string // clean, in POSIX form
	windows bool
	home    string       // of the user
	needle  *Needle      // in each match, unless its path is relative to a directory at or below path; may be nil
	occurs  *atomic.Bool // whether a search found the file's name anywhere
	others  *Others      // where files of the same name anywhere are meant; nil for this path alone
	until   time.Time    // of the last call that counts; zero for no limit
	earlier []*Touched   // the paths where the file was before
}

// Others are files of the same name that calls name.
type Others struct {
	mu    sync.Mutex // guards count
	count map[string]int
}

// add counts a file of a call.
func (o *Others) add(file string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count[file]++
}

// Nearest returns the file that has most of the end of a path, of several the one that most calls
// name; "" for none.
func (o *Others) Nearest(name string) (nearest string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	most := -1
	for _, file := range slices.Sorted(maps.Keys(o.count)) {
		rank := commonEnd(file, name)<<32 + o.count[file] // the number of calls decides among equal ends
		if file != name && rank > most {
			most = rank
			nearest = file
		}
	}
	return nearest
}

// commonEnd returns how many of the last names of two paths are the same.
func commonEnd(a, b string) (count int) {
	first := strings.Split(a, "/")
	second := strings.Split(b, "/")
	slices.Reverse(first)
	slices.Reverse(second)
	for count < min(len(first), len(second)) && first[count] == second[count] {
		count++
	}
	return count
}

// Elsewhere returns a matcher of the calls that name a file of the same name anywhere, and the names in
// them.
func (t *Touched) Elsewhere() (*Touched, *Others) {
	others := &Others{count: map[string]int{}}
	elsewhere := *t
	elsewhere.others = others
	elsewhere.earlier = nil
	return &elsewhere, others
}

// Until returns a matcher of the calls up to a time, which itself counts. t stays as it is.
func (t *Touched) Until(at time.Time) *Touched {
	limited := *t
	limited.until = at
	return &limited
}

// With returns a matcher of the calls that name the file at its path, or at one where it was before. t stays as
// it is.
func (t *Touched) With(earlier []*Touched) *Touched {
	all := *t
	all.earlier = earlier
	return &all
}

// NewTouched returns the Touched of an absolute path, of POSIX or Windows.
func NewTouched(name string) (*Touched, error) {
	_, windows, isAbs := names.AbsPath(name)
	if !isAbs || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("not an absolute path: %q", name)
	}
	t := &Touched{
		path:    foldedPath(name),
		windows: windows,
		occurs:  &atomic.Bool{},
	}
	t.home, _ = os.UserHomeDir()
	base := path.Base(t.path)
	isRoot := base == "/" || strings.HasSuffix(base, ":")
	if !isRoot {
		t.needle = newNeedle(&word{text: plainest(base), exact: !windows})
	}
	return t, nil
}

// Occurs reports whether a search for the file, or for the file elsewhere, found its name in any session.
func (t *Touched) Occurs() bool { return t.occurs.Load() }

// Path returns the clean path of the file.
func (t *Touched) Path() string { return t.path }

// Marks returns the expression that matches the name of the file in a line of a hit.
func (t *Touched) Marks() *regexp.Regexp {
	base := regexp.QuoteMeta(path.Base(t.path))
	if t.windows {
		base = "(?i)" + base
	}
	return regexp.MustCompile(base)
}

// plainest returns the longest part of a name without characters with escapes in some languages.
func plainest(name string) (longest string) {
	isEscaped := func(r rune) bool {
		return strings.ContainsRune("'`$", r)
	}
	for part := range strings.FieldsFuncSeq(name, isEscaped) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// Key implements Matcher. No query has a NUL.
func (t *Touched) Key() string {
	key := fmt.Sprint("\x00touched\x00", t.windows, t.others != nil, t.until.UnixNano(), t.path)
	for _, earlier := range t.earlier {
		key += earlier.Key()
	}
	return key
}

// Needle implements Matcher. The needle is the file's name, in a string with its path or one below
// it, so that mere mentions cause no indexing. In a session of a directory at or below the path, a call
// need not have the name.
func (t *Touched) Needle(_ string, header func() (rawjson.Value, error)) (_ *Needle, ok bool, err error) {
	h, err := header()
	if err != nil {
		return nil, false, err
	}
	var n *Needle
	for _, at := range t.paths() {
		own := at.needleIn(h)
		if own == nil {
			return nil, true, nil
		}
		n = own.orElse(n)
	}
	return n, true, nil
}

// paths returns the matchers of the path and of the earlier ones, the path's first.
func (t *Touched) paths() []*Touched { return append([]*Touched{t}, t.earlier...) }

// needleIn returns the needle of the path alone in a session with a header, nil where any call may name it.
func (t *Touched) needleIn(header rawjson.Value) *Needle {
	paths := t.pathsOf(header)
	if paths.isEverywhere() {
		t.occurs.Store(true) // nothing tells that it does not
		return nil
	}
	n := *t.needle
	var decoded []byte
	n.accept = func(b []byte, at int) bool {
		t.occurs.Store(true)
		if message.MayBePatched(b, at) {
			return true
		}
		body, ok := stringAround(b, at)
		if ok {
			decoded = rawjson.AppendDecoded(decoded[:0], body)
			if paths.isNamed(string(decoded)) || isPreview(b, body) {
				return true
			}
		}
		decoded = rawjson.AppendDecoded(decoded[:0], listedAround(b, at))
		return paths.isNamed(strings.TrimSpace(string(decoded)))
	}
	return &n
}

// FileOf returns the function that returns the clean path of a path in a call of a session, if that is the
// file or below it, else "".
func (t *Touched) FileOf(header rawjson.Value) func(path string) string {
	return t.pathsOf(header).fileOf
}

// begunInTime implements callMatcher. A fork begins later than the calls that it copies.
func (t *Touched) begunInTime(header func() (rawjson.Value, error)) (bool, error) {
	if t.until.IsZero() {
		return true, nil
	}
	h, err := header()
	isFork := h.AnyOf("parentSession", "parent_session") != nil
	if isFork {
		return true, err
	}
	begin, _, isKnown := rawjson.ReadTimestamp(h.Member("timestamp"))
	if !isKnown {
		return true, err
	}
	return begin <= t.until.UnixMilli(), err
}

// Checker implements Matcher.
func (t *Touched) Checker(header rawjson.Value, _ string) Checker {
	c := &touchChecker{others: t.others, results: map[sessioncore.Entry][]resultPaths{}}
	for _, at := range t.paths() {
		c.all = append(c.all, at.pathsOf(header))
	}
	return c
}

// Names returns the test whether a path in a call of a session is the file's or below it.
func (t *Touched) Names(header rawjson.Value) func(path string) bool {
	return t.pathsOf(header).isNamed
}
