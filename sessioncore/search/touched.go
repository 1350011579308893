package search

import (
	"bytes"
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
	needle *Needle // what a call has that is not relative to a directory at or below path; may be nil
}

// NewTouched returns the Touched of an absolute path.
func NewTouched(name string) (*Touched, error) {
	if !path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("not an absolute path: %q", name)
	}
	name = path.Clean(name)
	t := &Touched{path: name}
	if name != "/" {
		t.needle = newNeedle(&word{text: path.Base(name), exact: true})
	}
	return t, nil
}

// Path returns the path.
func (t *Touched) Path() string { return t.path }

// Key implements Matcher. No query has a NUL.
func (t *Touched) Key() string { return "\x00touched\x00" + t.path }

// Needle implements Matcher: the name of the file, in a string that is the path or of something below it. So a session
// that only mentions the name need not be indexed. In a session whose directory is at or below the path, a call need not
// have that name.
func (t *Touched) Needle(_ string, header func() (rawjson.Value, error)) (_ *Needle, ok bool, err error) {
	h, err := header()
	if err != nil {
		return nil, false, err
	}
	cwd := cwdOf(h)
	if t.needle == nil || cwd != "" && isBelow(cwd, t.path) {
		return nil, true, nil
	}
	n := *t.needle
	var decoded []byte
	n.accept = func(b []byte, at int) bool {
		if message.IsPatched(b, at) {
			return true
		}
		body, ok := stringAround(b, at)
		if !ok {
			return false
		}
		decoded = rawjson.AppendDecoded(decoded[:0], body)
		return touches(string(decoded), cwd, t.path)
	}
	return &n, true, nil
}

// cwdOf returns the working directory of a session, "" if it has none.
func cwdOf(header rawjson.Value) string {
	cwd, _ := header.Member("cwd").Text()
	if path.IsAbs(cwd) {
		return path.Clean(cwd)
	}
	return ""
}

// Checker implements Matcher.
func (t *Touched) Checker(header rawjson.Value, _ string) Checker {
	return &touchChecker{path: t.path, cwd: cwdOf(header)}
}

// touchChecker holds entries of a session against a Touched.
type touchChecker struct {
	path, cwd string
	found     []string
	prompt    lastPrompt
}

// Title implements Checker.
func (c *touchChecker) Title(rawjson.Value, time.Time) (line string, ok bool) { return "", false }

// Entry implements Checker. The line names each tool and what it was told to touch.
func (c *touchChecker) Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool) {
	if s.Kind(e) != sessioncore.TypeMessage {
		return Hit{}, false
	}
	c.found = c.found[:0]
	eachCall(s.Message(e, text).Member("content"), 0, c.call)
	if len(c.found) == 0 {
		return Hit{}, false
	}
	return Hit{Line: lineAt([]byte(strings.Join(c.found, "; ")), 0), Prompt: c.prompt.before(s, e)}, true
}

// call notes a call that names the path or something below it.
func (c *touchChecker) call(b *message.Members) {
	name, _ := b[message.Name].Text()
	said := ""
	message.EachPath(b[message.Arguments], func(arg string) {
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

// isBelow reports whether a directory is dir or below it.
func isBelow(name, dir string) bool {
	return name == dir || dir == "/" && len(name) > 0 && name[0] == '/' || len(name) > len(dir) && name[:len(dir)] == dir && name[len(dir)] == '/'
}

// lastPrompt is the user's prompt that was read last.
type lastPrompt struct {
	entry sessioncore.Entry
	line  string // its first one
	read  bool
}

// before returns the first line of the user's prompt that an entry follows or is, "" if there is none.
func (p *lastPrompt) before(s *sessioncore.Snapshot, e sessioncore.Entry) string {
	for n := 0; e != sessioncore.NoEntry && n < s.Len(); n++ { // parents may be a cycle
		if s.Role(e) != sessioncore.RoleUser {
			e = s.Parent(e)
			continue
		}
		if !p.read || p.entry != e {
			text, err := s.EntryText(e)
			if err != nil {
				return ""
			}
			*p = lastPrompt{e, lineAt(bytes.TrimSpace(textOf(s.Message(e, text))), 0), true}
		}
		return p.line
	}
	return ""
}

// textOf returns the first text in the content of a message.
func textOf(m rawjson.Value) []byte {
	content := m.Member("content")
	for block := range content.EachElement {
		if text, ok := block.Member("text").Bytes(); ok {
			return text
		}
	}
	text, _ := content.Bytes()
	return text
}

// eachCall calls f for each call of a tool in the content of a message.
func eachCall(content rawjson.Value, depth int, f func(*message.Members)) {
	if depth > maxContentDepth {
		return
	}
	look := func(v rawjson.Value) {
		b := message.Read(v)
		if b.Kind() == message.CallKind {
			f(&b)
		}
		eachCall(b[message.Block], depth+1, f)
	}
	if content.IsObject() {
		look(content)
	}
	for block := range content.EachElement {
		look(block)
	}
}

// stringAround returns the body of the string of at most message.MaxPath bytes that at is in. ok is false if there is none. Of a
// part of the text that is in no string it can return anything.
func stringAround(b []byte, at int) (body []byte, ok bool) {
	end := at
	for {
		n := bytes.IndexByte(b[end:min(len(b), at+message.MaxPath+1)], '"')
		if n < 0 {
			return nil, false
		}
		if end += n; !rawjson.IsEscaped(b[:end]) {
			break
		}
		end++
	}
	start := at
	for least := max(0, end-message.MaxPath-1); ; {
		n := bytes.LastIndexByte(b[least:start], '"')
		if n < 0 {
			return nil, false
		}
		if start = least + n; !rawjson.IsEscaped(b[:start]) {
			break
		}
	}
	var s rawjson.Scanner
	if after, st := s.SkipString(b[:end+1], start+1); st != rawjson.OK || after != end+1 {
		return nil, false
	}
	return b[start+1 : end], true
}
