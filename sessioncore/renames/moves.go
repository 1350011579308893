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

// WorkingDirectory is the working directory of a shell. The zero value is the one where a script begins.
type WorkingDirectory struct {
	path      string
	isUnknown bool
}

// In returns the directory after a change to the directory called name; Unknown if nothing tells it.
func (d WorkingDirectory) In(name string) WorkingDirectory {
	joined, ok := d.join(name)
	return WorkingDirectory{path: joined, isUnknown: !ok}
}

// Unknown is the directory of a shell that nothing tells.
var Unknown = WorkingDirectory{isUnknown: true}

// join returns the path of a name in the directory. ok is false if nothing tells it: in an unknown directory, for an
// empty path, and for one that leaves the home directory, such as ~/../b.
func (d WorkingDirectory) join(name string) (joined string, ok bool) {
	base := d.path
	isRelative := !path.IsAbs(name) && !isInHome(name)
	if isRelative && d.isUnknown {
		return "", false
	}
	if !isRelative {
		base = ""
	}
	joined = path.Join(base, name)
	if joined == "" {
		return "", false
	}
	begin := base
	if base == "" {
		begin = name
	}
	beginsInHome := strings.HasPrefix(begin, "~")
	return joined, beginsInHome == isInHome(joined)
}

// isInHome reports whether a name is ~ or below it.
func isInHome(name string) bool {
	return name == "~" || strings.HasPrefix(name, "~/")
}

// script is the knowledge about a script up to a command.
type script struct {
	dir    WorkingDirectory
	made   []string // directories
	moves  []Move
	isOver bool // no further command can be understood
}

// Find returns the moves of a script that a shell begins in a directory, if all commands succeed, and the
// directory of the shell behind it. In the directory /a:
//
//	cd b && mv x.go y.go    /a/b/x.go to /a/b/y.go, or into it; the shell is in /a/b
//	mv x.go $DIR            none: a variable is not plain text
//	mv x.go y.go || true    none: nothing tells whether the move succeeded
func Find(text string, dir WorkingDirectory) ([]Move, WorkingDirectory) {
	s := script{dir: dir}
	scan := wordScanner{rest: text}
	for !s.isOver && !scan.isOver && scan.rest != "" {
		s.list(&scan)
	}
	isCut := s.isOver || scan.isOver
	if isCut && changer.MatchString(text) {
		s.dir = Unknown
	}
	return s.moves, s.dir
}

// changer matches the commands that may change the directory of a shell.
var changer = regexp.MustCompile(`\b(cd|pushd|popd|eval|source)\b`)

// list reads commands up to the end of a line, and notes their effects. If one of them need not run or succeed,
// none is known to: then their effects are dropped, and the directory is unknown if one may have changed it.
func (s *script) list(scan *wordScanner) {
	before := *s
	isSure := true
	for {
		words, end := scan.command()
		if isTest(words) || end == endOr || end == endPipe || end == endForParent {
			isSure = false
		}
		s.run(words)
		goesOn := end == endAnd || end == endOr || end == endPipe
		if !goesOn {
			break
		}
	}
	if isSure {
		return
	}
	isOver := s.isOver
	hasChangedDirectory := s.dir != before.dir
	*s = before
	s.isOver = isOver
	if hasChangedDirectory {
		s.dir = Unknown
	}
}

// isTest reports whether a command decides whether others run.
func isTest(words []shellWord) bool {
	if len(words) == 0 {
		return false
	}
	name := words[0].text
	return name == "test" || name == "["
}

var (
	// assignment begins a command with a variable of its own.
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*\+?=`)
	// structures begin commands that decide whether, how often or where others run.
	structures = strings.Fields("if then elif else fi for while until do done case esac select function { } [[ ! time " +
		"coproc eval exec source . pushd popd exit return break continue trap alias unalias unset")
)

// run notes the effect of a command on files and on the directory, if it has one that is known. It ends the script
// at a command that decides about others, or that has no plain name.
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
		s.makeDirectories(words[1:])
	case name == "mv" || name == "/bin/mv" || name == "/usr/bin/mv":
		s.move(s.dir, words[1:])
	case name == "git":
		s.git(words[1:])
	}
}

// makeDirectories notes the directories of a mkdir.
func (s *script) makeDirectories(args []shellWord) {
	for _, w := range args {
		made, isKnown := s.dir.join(w.text)
		if isKnown && w.isPlain {
			s.made = append(s.made, made)
		}
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

// git notes a git mv, also one with -C DIRECTORY before it.
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

// mvOperands are the operands of a mv, the target as the last one.
type mvOperands struct {
	words []shellWord
	isIn  bool // an option says that the target is a directory
	isOn  bool // an option says that it is none
}

// parseMv parses the arguments of a mv. isKnown is false with an option that may keep it from moving.
func parseMv(args []shellWord) (o mvOperands, isKnown bool) {
	areOptions := true // until --
	for n := 0; n < len(args); n++ {
		option := args[n].text
		isOperand := !areOptions || !strings.HasPrefix(option, "-") || option == "-"
		switch {
		case isOperand:
			o.words = append(o.words, args[n])
		case option == "--":
			areOptions = false
		case option == "-t" && n+1 < len(args):
			n++
			o.words = slices.Insert(o.words, 0, args[n]) // the target, which is moved to the end below
			o.isIn = true
		case option == "-T", option == "--no-target-directory":
			o.isOn = true
		case option == "--force", option == "--verbose":
		case strings.Trim(option, "-fv") != "":
			return mvOperands{}, false
		}
	}
	if o.isIn {
		o.words = append(o.words[1:], o.words[0])
	}
	return o, true
}

// move notes the files that a mv moves, unless it has an option with which it may move none.
func (s *script) move(dir WorkingDirectory, args []shellWord) {
	operands, isKnown := parseMv(args)
	if !isKnown || len(operands.words) < 2 {
		return
	}
	var paths []string
	for _, w := range operands.words {
		name, isJoined := dir.join(w.text)
		if !isJoined || !w.isPlain || w.text == "" {
			return
		}
		paths = append(paths, name)
	}
	last := len(paths) - 1
	target := paths[last]
	areSeveral := last > 1
	isDirectory := areSeveral || operands.isIn || s.isDirectory(operands.words[last].text, target)
	s.moves = append(s.moves, Move{
		From: paths[:last:last],
		To:   target,
		Into: !operands.isOn,
		Onto: !isDirectory,
	})
}

// isDirectory reports whether a target is certainly a directory, by its text and its path.
func (s *script) isDirectory(text, target string) bool {
	switch path.Base(text) {
	case ".", "..", "~":
		return true
	}
	return slices.Contains(s.made, target)
}
