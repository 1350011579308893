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
// above it. Whether the calls succeeded, their results tell.
type Moves struct {
	to    *Touched
	names []string // the parts of the path
}

// Moves returns the matcher of the moves to the file, nil where its path is one of Windows.
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

// Needle implements Matcher.
func (m *Moves) Needle(string, func() (rawjson.Value, error)) (_ *Needle, ok bool, err error) {
	n := newNeedle(&word{text: moveName, exact: true})
	n.accept = m.accept
	return n, true, nil
}

// inRaw implements callMatcher.
func (m *Moves) inRaw(string, func() (rawjson.Value, error)) *Needle {
	n, _, _ := m.Needle("", nil)
	return n
}

// begunInTime implements callMatcher.
func (m *Moves) begunInTime(func() (rawjson.Value, error)) (bool, error) { return true, nil }

// maxMove bounds a command that moves files, in bytes of the file. The names of a longer one are not read.
const maxMove = 1 << 10

// accept reports whether the command's name at an offset may begin a command that moves something to the
// path: it stands alone, and what follows names a part of the path.
func (m *Moves) accept(b []byte, at int) bool {
	isEscaped := b[at] == '\\'
	if !isEscaped && !beginsName(b, at) {
		return false
	}
	rest := b[at:min(len(b), at+maxMove)]
	if isEscaped || len(rest) == len(moveName) || !strings.ContainsRune(" \t\r", rune(rest[len(moveName)])) {
		return isEscaped || len(rest) > len(moveName) && strings.ContainsRune(`\"'`, rune(rest[len(moveName)]))
	}
	isIn := func(name string) bool { return bytes.Contains(rest, []byte(name)) }
	for range maxEscapes {
		if !slices.ContainsFunc(m.names, isIn) && !bytes.Contains(rest, []byte(`\u`)) {
			return false
		}
		body := rest[:stringEnd(rest)]
		text := rawjson.AppendDecoded(nil, body)
		if m.mayMove(string(text)) {
			return true
		}
		if len(text) == len(body) {
			break // nothing was escaped
		}
		rest = text
	}
	return false
}

// mayMove reports whether a command may move something to the path. One that cannot be read alone may.
func (m *Moves) mayMove(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	moves, _ := renames.Find(line, renames.WorkingDirectory{})
	if len(moves) > 0 {
		return slices.ContainsFunc(moves, m.mayReach)
	}
	return slices.ContainsFunc(m.names, func(name string) bool { return strings.Contains(line, name) })
}

// beginsName reports whether no name goes on at an offset.
func beginsName(b []byte, at int) bool {
	if at == 0 {
		return true
	}
	before := b[at-1]
	if at > 1 && b[at-2] == '\\' && (before == 'n' || before == 't' || before == 'r') {
		return true // behind a newline or a tab
	}
	isLetter := before >= 'a' && before <= 'z' || before >= 'A' && before <= 'Z'
	return !isLetter && (before < '0' || before > '9') && before != '_' && before != '-' && before != '.'
}

// stringEnd returns where a string of JSON ends, of which a text is the rest.
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
	isIn := func(name string) bool { return slices.Contains(m.names, path.Base(name)) }
	return isIn(move.To) || slices.ContainsFunc(move.From, isIn)
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
		if isShell && len(c.earlier(c.paths, shell, shell.Start(renames.WorkingDirectory{}))) > 0 {
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

// Earlier returns the earlier paths by a call of a shell that begins in a directory, in a session with a
// header: those of each move, the last move's last.
func (m *Moves) Earlier(header rawjson.Value, shell message.ShellCall, dir renames.WorkingDirectory) [][]EarlierPath {
	return m.earlier(m.to.pathsOf(header), shell, dir)
}

// earlier is Earlier for the paths of a session.
func (m *Moves) earlier(p *paths, shell message.ShellCall, dir renames.WorkingDirectory) (all [][]EarlierPath) {
	if !strings.Contains(shell.Command, moveName) {
		return nil
	}
	moves, _ := renames.Find(shell.Command, dir)
	for _, move := range moves {
		var of []EarlierPath
		for _, from := range move.From {
			homes := []string{""}
			if strings.HasPrefix(from, "~") || strings.HasPrefix(move.To, "~") {
				homes = p.homes
			}
			for _, home := range homes {
				of = append(of, m.earlierBy(move, p.absolute(from, home), p.absolute(move.To, home))...)
			}
		}
		if len(of) > 0 {
			all = append(all, slices.Compact(of))
		}
	}
	return all
}

// absolute returns the clean absolute path of a name in a command: below a home directory if the name is
// below ~, else in the session's directory. It returns "" if none is known.
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

// earlierBy returns the earlier paths by the move of one file or directory.
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
	return slices.DeleteFunc(all, func(e EarlierPath) bool { return e.Path == file })
}
