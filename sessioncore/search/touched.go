package search

import (
	"fmt"
	"path"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// Touched is a Matcher. Its hits are the entries with a call of a tool that names a file, or something below a directory
// (docs/design.md section 5, by-file/). It does not change.
type Touched struct {
	path   string
	needle *pathNeedle // what a call has that is not relative to a directory at or below path; may be nil
}

// NewTouched returns the Touched of an absolute path.
func NewTouched(name string) (*Touched, error) {
	if !path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("not an absolute path: %q", name)
	}
	name = path.Clean(name)
	t := &Touched{path: name}
	if name != "/" {
		t.needle = newPathNeedle(path.Base(name))
	}
	return t, nil
}

// Path returns the path.
func (t *Touched) Path() string { return t.path }

// Key implements Matcher. No query has a NUL.
func (t *Touched) Key() string { return "\x00touched\x00" + t.path }

// Needle implements Matcher: the name of the file, in a path of it. In a session whose directory is at or below path, a call need not
// have that name.
func (t *Touched) Needle(header func() (rawjson.Value, error)) (*Needle, error) {
	h, err := header()
	if err != nil {
		return nil, err
	}
	cwd := cwdOf(h)
	if t.needle == nil || cwd != "" && isBelow(cwd, t.path) {
		return nil, nil
	}
	return t.needle.accepting(func(arg string) bool { return touches(arg, cwd, t.path) }), nil
}

// cwdOf returns the working directory of a session, "" if it has none.
func cwdOf(header rawjson.Value) string {
	cwd, _ := header.Member("cwd").Text()
	if path.IsAbs(cwd) {
		return path.Clean(cwd)
	}
	return ""
}

// Session implements Matcher.
func (t *Touched) Session(func() (rawjson.Value, error)) (bool, error) { return true, nil }

// Checker implements Matcher.
func (t *Touched) Checker() Checker { return &touchChecker{path: t.path} }

// touchChecker holds entries against a Touched.
type touchChecker struct {
	path    string
	snap    *sessioncore.Snapshot // of which the rest is
	cwd     string
	prompts map[sessioncore.Entry]sessioncore.Entry
	found   []string
}

// Title implements Checker.
func (c *touchChecker) Title(rawjson.Value, time.Time) (line string, ok bool) { return "", false }

// Entry implements Checker. The line names each tool and what it was told to touch.
func (c *touchChecker) Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool, err error) {
	if s.Kind(e) != sessioncore.TypeMessage {
		return Hit{}, false, nil
	}
	if err := c.of(s); err != nil {
		return Hit{}, false, err
	}
	c.found = c.found[:0]
	eachCall(s.Message(e, text).Member("content"), 0, c.call)
	if len(c.found) == 0 {
		return Hit{}, false, nil
	}
	line := lineAt([]byte(strings.Join(c.found, "; ")), 0)
	return Hit{Line: line, Prompt: c.promptBefore(e)}, true, nil
}

// of makes c check entries of that snapshot.
func (c *touchChecker) of(s *sessioncore.Snapshot) error {
	if c.snap == s {
		return nil
	}
	header, _, err := s.ReadHeader()
	if err != nil {
		return err
	}
	c.snap, c.cwd, c.prompts = s, cwdOf(header), map[sessioncore.Entry]sessioncore.Entry{}
	return nil
}

// call notes a call that names the path or something below it.
func (c *touchChecker) call(b *message.Members) {
	name, _ := b[message.Name].Text()
	said := ""
	eachPath(b[message.Arguments], 0, false, func(arg string) {
		if said != arg && touches(arg, c.cwd, c.path) {
			said = arg
			c.found = append(c.found, strings.TrimSpace(name+" "+arg))
		}
	})
}

// touches reports whether an argument is a path or below it, in a session with a working directory or with none. Tools take
// what is behind a colon as lines of the file, or as what is in it.
func touches(arg, cwd, file string) bool {
	if arg == "" || strings.Contains(arg, "://") {
		return false
	}
	beforeColon, _, _ := strings.Cut(arg, ":")
	return isAtOrBelow(arg, cwd, file) || len(beforeColon) < len(arg) && isAtOrBelow(beforeColon, cwd, file)
}

func isAtOrBelow(name, cwd, file string) bool {
	switch {
	case name == "":
		return false
	case path.IsAbs(name):
		return isBelow(path.Clean(name), file)
	}
	return cwd != "" && isBelow(path.Join(cwd, name), file)
}

// promptBefore returns the name of the user's prompt that an entry follows, "" if there is none.
func (c *touchChecker) promptBefore(e sessioncore.Entry) string {
	prompt, passed := sessioncore.NoEntry, []sessioncore.Entry(nil)
	for at := e; at != sessioncore.NoEntry && len(passed) < c.snap.Len(); at = c.snap.Parent(at) {
		known, isKnown := c.prompts[at]
		if isKnown {
			prompt = known
			break
		}
		passed = append(passed, at)
		if c.snap.Role(at) == sessioncore.RoleUser {
			prompt = at
			break
		}
	}
	for _, at := range passed {
		c.prompts[at] = prompt
	}
	if prompt == sessioncore.NoEntry {
		return ""
	}
	return c.snap.Name(prompt)
}
