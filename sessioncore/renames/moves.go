package renames

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Move is a command that moves files. Names are absolute, below ~, or relative to the directory in which
// the script begins.
type Move struct {
	From []string
	To   string
	// Into says that the files may be in the directory To afterwards, Onto that the file may have the path
	// To. The text of a command does not always tell which.
	Into, Onto bool
}

// WorkingDirectory is the working directory of a shell. The zero value is that in which a script begins.
type WorkingDirectory struct {
	path      string
	isUnknown bool
}

// In returns the directory of a name in a directory.
func (d WorkingDirectory) In(name string) WorkingDirectory {
	joined, ok := d.join(name)
	return WorkingDirectory{path: joined, isUnknown: !ok}
}

// Unknown is the directory of a shell that nothing tells.
var Unknown = WorkingDirectory{isUnknown: true}

// join returns a name behind the directory.
func (d WorkingDirectory) join(name string) (joined string, ok bool) {
	base := d.path
	if path.IsAbs(name) || name == "~" || strings.HasPrefix(name, "~/") {
		base = ""
	} else if d.isUnknown {
		return "", false
	}
	joined = path.Join(base, name)
	isOfHome := strings.HasPrefix(base, "~") || base == "" && strings.HasPrefix(name, "~")
	return joined, joined != "" && isOfHome == (joined == "~" || strings.HasPrefix(joined, "~/"))
}

// script is what is known of a script up to a command.
type script struct {
	dir    WorkingDirectory
	made   []string // directories
	moves  []Move
	isOver bool // no further command can be understood
}

// Find returns the moves of a script whose shell begins in a directory, if all commands succeed, and the
// directory of the shell behind it.
func Find(text string, dir WorkingDirectory) ([]Move, WorkingDirectory) {
	s := script{dir: dir}
	scan := wordScanner{rest: text}
	for !s.isOver && !scan.isOver && scan.rest != "" {
		s.list(&scan)
	}
	if (s.isOver || scan.isOver) && changer.MatchString(text) {
		s.dir = Unknown
	}
	return s.moves, s.dir
}

// changer matches the commands that may change the directory of a shell.
var changer = regexp.MustCompile(`\b(cd|pushd|popd|eval|source)\b`)

// list reads commands up to the end of a line. If one of them need not run or succeed, none is known to.
func (s *script) list(scan *wordScanner) {
	before := *s
	isSure := true
	for end := endAnd; end == endAnd || end == endOr || end == endPipe; {
		var words []shellWord
		words, end = scan.command()
		isSure = isSure && end != endOr && end != endPipe && end != endForParent && !isTest(words)
		s.run(words)
	}
	if isSure {
		return
	}
	if s.dir != before.dir {
		before.dir = Unknown
	}
	before.isOver = s.isOver
	*s = before
}

// isTest reports whether a command decides whether others run.
func isTest(words []shellWord) bool {
	return len(words) > 0 && (words[0].text == "test" || words[0].text == "[")
}

var (
	// assignment begins a command with a variable of its own.
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*\+?=`)
	// structures begin commands that decide whether, how often or where others run.
	structures = strings.Fields("if then elif else fi for while until do done case esac select function { } [[ ! time " +
		"coproc eval exec source . pushd popd exit return break continue trap alias unalias unset")
)

// run notes the effect of a command.
func (s *script) run(words []shellWord) {
	isPrefix := func(w shellWord) bool {
		return assignment.MatchString(w.text) || w.text == "command" || w.text == "sudo"
	}
	for len(words) > 0 && isPrefix(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || s.isOver {
		return
	}
	name := words[0].text
	switch {
	case !words[0].isPlain || slices.Contains(structures, name):
		s.isOver = true
	case name == "cd":
		s.changeDirectory(words[1:])
	case name == "mkdir":
		for _, w := range words[1:] {
			if made, ok := s.dir.join(w.text); ok && w.isPlain {
				s.made = append(s.made, made)
			}
		}
	case name == "mv" || name == "/bin/mv" || name == "/usr/bin/mv":
		s.move(s.dir, words[1:])
	case name == "git":
		s.git(words[1:])
	}
}

// changeDirectory notes a cd.
func (s *script) changeDirectory(args []shellWord) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		s.dir = WorkingDirectory{path: "~"}
	case len(args) > 1 || !args[0].isPlain || strings.HasPrefix(args[0].text, "-"):
		s.dir = Unknown
	default:
		s.dir = s.dir.In(args[0].text)
	}
}

// git notes a git mv.
func (s *script) git(args []shellWord) {
	dir := s.dir
	for len(args) > 1 && args[0].text == "-C" {
		if !args[1].isPlain {
			return
		}
		dir = dir.In(args[1].text)
		args = args[2:]
	}
	if len(args) > 0 && args[0].text == "mv" {
		s.move(dir, args[1:])
	}
}

// move notes the files that a mv moves, unless it has an option with which it may move none.
func (s *script) move(dir WorkingDirectory, args []shellWord) {
	move := Move{Into: true, Onto: true}
	var operands []shellWord
	isIn := false // a directory that an option names
	areOptions := true
	for n := 0; n < len(args); n++ {
		option := args[n].text
		switch {
		case !areOptions || !strings.HasPrefix(option, "-") || option == "-":
			operands = append(operands, args[n])
		case option == "--":
			areOptions = false
		case option == "-t" && n+1 < len(args):
			n++
			operands = append([]shellWord{args[n]}, operands...)
			isIn = true
		case option == "-T" || option == "--no-target-directory":
			move.Into = false
		case option != "--force" && option != "--verbose" && strings.Trim(option, "-fv") != "":
			return
		}
	}
	if isIn {
		operands = append(operands[1:], operands[0])
	}
	if len(operands) < 2 {
		return
	}
	last := len(operands) - 1
	for i, w := range operands {
		name, ok := dir.join(w.text)
		if !ok || !w.isPlain || w.text == "" {
			return
		}
		if i < last {
			move.From = append(move.From, name)
		} else {
			move.To = name
		}
	}
	base := path.Base(operands[last].text)
	isDirectory := base == "." || base == ".." || base == "~" || slices.Contains(s.made, move.To)
	if isIn || last > 1 || isDirectory {
		move.Onto = false
	}
	s.moves = append(s.moves, move)
}
