package search

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/renames"
)

// Moves is an immutable Matcher for the calls of a shell that move a file to a path, or a directory to one
// above it. Only the results of the calls tell whether they succeeded.
type Moves struct {
	to    *Touched
	names []string // the parts of the path
}

// Moves returns the matcher of the moves to the file, nil for a path of Windows and for the root.
func (t *Touched) Moves() *Moves {
	if t.windows || t.needle == nil {
		return nil
	}
	return &Moves{to: t, names: strings.Split(t.path[1:], "/")}
}

// moveName is in each command that moves a file.
const moveName = "mv"

// Key implements Matcher.
func (m *Moves) Key() string { return "\x00moves\x00" + m.to.path }

// Needle implements Matcher. It is the same for all sessions, so that any may have hits.
func (m *Moves) Needle(string, func() (rawjson.Value, error)) (_ *Needle, ok bool, err error) {
	n := newNeedle(&word{text: moveName, exact: true})
	n.accept = m.accept
	return n, true, nil
}

// inRaw implements callMatcher.
func (m *Moves) inRaw(string, func() (rawjson.Value, error)) *Needle {
	n, _, _ := m.Needle("", nil) // which needs neither
	return n
}

// begunInTime implements callMatcher.
func (m *Moves) begunInTime(func() (rawjson.Value, error)) (bool, error) { return true, nil }

// maxMove bounds a command that moves files, in bytes of the file. The names of a longer one are not read.
const maxMove = 1 << 10

// accept reports whether "mv" at an offset may begin a command that moves something to the path: it is a word
// by itself, and the command names a part of the path. "\u006dv", an escaped one, is not read further.
func (m *Moves) accept(b []byte, at int) bool {
	if b[at] == '\\' {
		return true
	}
	if !beginsName(b, at) {
		return false
	}
	rest := b[at:min(len(b), at+maxMove)]
	if len(rest) == len(moveName) {
		return false
	}
	behind := rest[len(moveName)]
	switch behind {
	case '\\', '"', '\'':
		return true // the command goes on in a way that is not read here
	case ' ', '\t', '\r':
		return m.mayMoveIn(rest)
	}
	return false
}

// mayMoveIn reports whether a command at the beginning of a string in a file may move something to the path.
// The string may be JSON in a string, and that, too.
func (m *Moves) mayMoveIn(rest []byte) bool {
	isIn := func(name string) bool {
		return bytes.Contains(rest, []byte(name))
	}
	for range maxEscapes {
		// An escaped character may be a part of a name.
		mayHaveName := slices.ContainsFunc(m.names, isIn) || isIn(`\u`)
		if !mayHaveName {
			return false
		}
		body := rest[:stringEnd(rest)]
		text := rawjson.AppendDecoded(nil, body)
		if m.mayMove(string(text)) {
			return true
		}
		isPlain := len(text) == len(body)
		if isPlain {
			return false
		}
		rest = text
	}
	return false
}

// mayMove reports whether a command may move something to the path. If its first line is only a part of the
// command, it may if it has a part of the path.
func (m *Moves) mayMove(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	moves, _ := renames.Find(line, renames.WorkingDirectory{})
	if len(moves) > 0 {
		return slices.ContainsFunc(moves, m.mayReach)
	}
	return slices.ContainsFunc(m.names, func(name string) bool {
		return strings.Contains(line, name)
	})
}

// beginsName reports whether a name begins at an offset: the byte before it is not a part of the name.
func beginsName(b []byte, at int) bool {
	if at == 0 {
		return true
	}
	before := b[at-1]
	isEscaped := at > 1 && b[at-2] == '\\'
	if isEscaped {
		switch before {
		case 'n', 't', 'r': // a newline or a tab
			return true
		}
	}
	isLetter := isASCIILetter(before)
	isDigit := before >= '0' && before <= '9'
	isSign := before == '_' || before == '-' || before == '.'
	return !isLetter && !isDigit && !isSign
}

// isASCIILetter reports whether a byte is a letter of ASCII.
func isASCIILetter(b byte) bool {
	lower := b | 0x20
	return lower >= 'a' && lower <= 'z'
}

// stringEnd returns the offset of the quote that ends a string of JSON, for a text from within the string on.
func stringEnd(text []byte) int {
	isEscaped := false
	for i, c := range text {
		if c == '"' && !isEscaped {
			return i
		}
		isEscaped = c == '\\' && !isEscaped
	}
	return len(text)
}

// mayReach reports whether a move may end at the path or above it, by the last names alone.
func (m *Moves) mayReach(move renames.Move) bool {
	isPart := func(name string) bool {
		return slices.Contains(m.names, path.Base(name))
	}
	return isPart(move.To) || slices.ContainsFunc(move.From, isPart)
}

// Checker implements Matcher.
func (m *Moves) Checker(header rawjson.Value, _ string) Checker {
	return &moveChecker{Moves: m, paths: m.to.pathsOf(header)}
}

// moveChecker checks entries of a session against a Moves.
type moveChecker struct {
	*Moves
	paths *paths
}

// Title implements Checker.
func (c *moveChecker) Title(rawjson.Value, time.Time) (line string, ok bool) { return "", false }

// Entry implements Checker.
func (c *moveChecker) Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool) {
	if s.Kind(e) != sessioncore.TypeMessage {
		return Hit{}, false
	}
	found := ""
	check := func(call *message.Members) {
		shell, isShell := message.Shell(call)
		if !isShell {
			return
		}
		start := shell.Start(renames.WorkingDirectory{})
		if len(c.earlier(c.paths, shell, start)) > 0 {
			found = shell.Command
		}
	}
	m := message.Read(s.Message(e, text))
	message.EachCall(m[message.Content], check)
	message.EachNested(&m, check)
	return Hit{Line: lineAt([]byte(found), 0)}, found != ""
}

// EarlierPath is a path where the file was, if a move has succeeded.
type EarlierPath struct {
	Path string
	// Above is the directory that was moved, if the file was below it; at that path there was nothing before.
	// It is "" for a move into a directory.
	Above string
}

// Earlier returns the earlier paths by a call of a shell that begins in a directory: a list for each move that
// reaches the path, in the order of the command; nil for none. header is the header of the session.
func (m *Moves) Earlier(header rawjson.Value, shell message.ShellCall, dir renames.WorkingDirectory) [][]EarlierPath {
	return m.earlier(m.to.pathsOf(header), shell, dir)
}

// earlier is Earlier for the paths of a session. A path below ~ may be below each home directory.
func (m *Moves) earlier(p *paths, shell message.ShellCall, dir renames.WorkingDirectory) (all [][]EarlierPath) {
	if !strings.Contains(shell.Command, moveName) {
		return nil
	}
	moves, _ := renames.Find(shell.Command, dir)
	for _, move := range moves {
		var earlier []EarlierPath
		for _, from := range move.From {
			homes := []string{""}
			if strings.HasPrefix(from, "~") || strings.HasPrefix(move.To, "~") {
				homes = p.homes
			}
			for _, home := range homes {
				byMove := m.earlierBy(move, p.absolute(from, home), p.absolute(move.To, home))
				earlier = append(earlier, byMove...)
			}
		}
		if len(earlier) > 0 {
			all = append(all, slices.Compact(earlier))
		}
	}
	return all
}

// absolute returns the clean absolute path of a name in a command: below home if the name is ~ or below it,
// else in the session's directory. It returns "" if that is not known, or is of Windows, where mv is no command.
func (p *paths) absolute(name, home string) string {
	isOfHome := name == "~" || strings.HasPrefix(name, "~/")
	switch {
	case isOfHome:
		return path.Join(home, name[1:])
	case p.windows:
		return ""
	case path.IsAbs(name):
		return path.Clean(name)
	case p.cwd == "":
		return ""
	}
	return path.Join(p.cwd, name)
}

// earlierBy returns the earlier paths by the move of one file or directory. For the file /a/b/c, the move of /b
// to /a gives /b/c if /a was a directory that b went into, and /b/b/c if b became /a.
func (m *Moves) earlierBy(move renames.Move, from, to string) (all []EarlierPath) {
	if from == "" || to == "" {
		return nil
	}
	file := m.to.path
	inside := path.Join(to, path.Base(from))
	if move.Into && isBelow(file, inside) {
		all = append(all, EarlierPath{Path: from + file[len(inside):]})
	}
	if move.Onto && isBelow(file, to) && to != "/" {
		all = append(all, EarlierPath{Path: from + file[len(to):], Above: to})
	}
	return slices.DeleteFunc(all, func(e EarlierPath) bool {
		return e.Path == file
	})
}
