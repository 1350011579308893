package blame

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
)

// Change is one change of a file: Old becomes New.
type Change struct {
	Old   string
	New   string
	Whole bool // New is the whole file
	All   bool // every place of Old is replaced, not only the first one
	Lines bool // Old and New are whole lines

	// From and To are the numbers of the first and the last line that New replaces, from 1, where Old is
	// not known. To is From-1 if New replaces none. From is 0 where Old is known, and atEnd for New behind
	// the last line.
	From int
	To   int
}

// atEnd is the From of a change behind the last line.
const atEnd = -1

// arguments are the arguments of one edit.
type arguments struct {
	byRole [message.Roles]rawjson.Value
}

// argumentsOf returns the arguments in a call of a tool, or in one item of its list of edits, by their roles. An
// argument without a role is left out.
func argumentsOf(tool string, v rawjson.Value) (a arguments) {
	for m := range v.EachMember {
		role := message.ArgumentOf(tool, m.Name()).Role
		a.byRole[role] = m.Value
	}
	return a
}

// text returns the argument with a role. ok is false if it is no string.
func (a *arguments) text(role message.ArgumentRole) (text string, ok bool) {
	v := a.byRole[role]
	return textOf(v), v.IsString()
}

// textOf returns a string with a newline alone at the end of each line, as blame compares lines.
func textOf(v rawjson.Value) string {
	text, _ := v.Text()
	return strings.ReplaceAll(text, "\r\n", "\n")
}

// Changes returns the changes of one file that a call of a tool with arguments v makes, if it succeeds; none if the
// call does not change the file. is knows the file by its path. An agent names changes in one of these ways:
//
//	{"file_path": "a.go", "old_string": "x", "new_string": "y"}    one change
//	{"file_path": "a.go", "edits": [{"old_string": …}, …]}          a list of changes
//	{"input": "…"}                                                  a patch
//	{"command": ["apply_patch", "*** Begin Patch …"]}               a patch in any text
func Changes(tool string, v rawjson.Value, is func(path string) bool) (list []Change) {
	a := argumentsOf(tool, v)
	workDir := textOf(v.Member("workdir"))
	isInPatch := func(name string) bool {
		_, _, isAbs := names.AbsPath(name)
		if workDir != "" && !isAbs && !strings.HasPrefix(name, "~") {
			name = path.Join(workDir, name)
		}
		return is(name)
	}
	file, isNamed := a.text(message.FileRole)
	isFile := isNamed && is(file)
	verb := a.byRole[message.VerbRole]
	if len(verb) == 0 {
		verb = a.byRole[message.CommandRole]
	}
	list = a.changes(isFile, message.WritesWhole(tool, verb), isInPatch)
	old, hasOld := a.text(message.OldRole)
	if len(list) == 1 && hasOld && old == "" {
		list[0].Whole = true // the file is new
	}
	for item := range a.byRole[message.EditsRole].EachElement {
		edit := argumentsOf(tool, item)
		isOfFile := isFile
		name, hasName := edit.text(message.FileRole)
		if hasName {
			isOfFile = is(name)
		}
		list = append(list, edit.changes(isOfFile, false, isInPatch)...)
	}
	for m := range v.EachMember {
		use := message.ArgumentOf(tool, m.Name()).Use
		if use == message.PatchUse && m.Value.IsString() {
			list = append(list, sections(textOf(m.Value), isInPatch)...)
		}
	}
	if len(list) > 0 {
		return list
	}
	eachText(v, 0, func(text string) {
		list = append(list, patched(text, isInPatch)...)
	})
	return list
}

// changes returns the changes of the file by one edit, none if it has no text for it. isFile says that the edit
// names the file, isInPatch knows the file by its path in a patch, and writesWhole says that a content is the whole
// file.
func (a *arguments) changes(isFile, writesWhole bool, isInPatch func(string) bool) []Change {
	diff, hasDiff := a.text(message.DiffRole)
	if hasDiff {
		list := patched(diff, isInPatch)
		if len(list) > 0 || !isFile {
			return list
		}
		return hunks(strings.Split(diff, "\n"))
	}
	if !isFile {
		return nil
	}
	text, hasNew := a.text(message.NewRole)
	if hasNew {
		return []Change{a.replacing(text)}
	}
	content, hasContent := a.text(message.ContentRole)
	if hasContent && writesWhole {
		return []Change{{New: content, Whole: true}}
	}
	return nil
}

// replacing returns the change that puts a text behind the line with the number of the arguments, or without one
// in place of the old text.
func (a *arguments) replacing(text string) Change {
	line, err := strconv.Atoi(string(a.byRole[message.BehindRole]))
	isInsertion := err == nil
	if isInsertion {
		return Change{
			New:   strings.TrimSuffix(text, "\n") + "\n",
			Lines: true,
			From:  line + 1,
			To:    line,
		}
	}
	old, _ := a.text(message.OldRole)
	return Change{Old: old, New: text, All: a.byRole[message.AllRole].Truthy()}
}

// maxDepth bounds how deep in the arguments texts are read.
const maxDepth = 4

// eachText calls f for the texts in a value that is at a depth of the arguments.
func eachText(v rawjson.Value, depth int, f func(string)) {
	if v.IsString() {
		f(textOf(v))
	}
	if depth == maxDepth {
		return
	}
	for m := range v.EachMember {
		eachText(m.Value, depth+1, f)
	}
	for e := range v.EachElement {
		eachText(e, depth+1, f)
	}
}

const (
	patchBegin = "*** Begin Patch"
	patchEnd   = "\n*** End Patch"
)

// patched returns the changes of the file in all patches of apply_patch in a text.
func patched(text string, is func(string) bool) (list []Change) {
	for {
		_, patch, found := strings.Cut(text, patchBegin)
		if !found {
			return list
		}
		if strings.HasPrefix(patch, `\n`) { // the text is source code, and the patch a string in it
			patch = string(rawjson.AppendDecoded(nil, []byte(patch)))
		}
		patch, text, _ = strings.Cut(patch, patchEnd)
		list = append(list, files(patch, is)...)
	}
}

// files returns the changes of the file in one patch of apply_patch:
//
//	*** Update File: a.go
//	@@
//	-old
//	+new
func files(patch string, is func(string) bool) (list []Change) {
	const addMark = "*** Add File"
	var section patchSection
	for line := range strings.SplitSeq(patch, "\n") {
		mark, path, _ := strings.Cut(line, ": ")
		switch mark {
		case addMark, "*** Update File", "*** Delete File":
			list = append(list, section.changes()...)
			section = patchSection{isFile: is(path), adds: mark == addMark}
		case "*** Move to":
			if is(path) {
				section.isFile = true
			}
		default:
			section.lines = append(section.lines, line)
		}
	}
	return append(list, section.changes()...)
}

// patchSection is the part of a patch of apply_patch about one file.
type patchSection struct {
	isFile bool // it is the file's
	adds   bool // the patch adds the file
	lines  []string
}

// changes returns the changes of the file by the section, none if it is about another one.
func (s *patchSection) changes() []Change {
	switch {
	case !s.isFile:
		return nil
	case s.adds:
		return []Change{added(s.lines)}
	}
	return hunks(s.lines)
}

// operation matches a line of a patch of omp's edit. "PUT 3.=5:" replaces the lines 3 to 5, "PUT <3:" puts
// lines before line 3, "PUT >3:" behind it, "PUT $:" at the end, and "CUT 3" removes line 3.
var operation = regexp.MustCompile(`^(?:PUT|CUT) ([<>]?)(\d+|\$)(?:\.=(\d+))?:?$`)

// anchored returns a change of unknown lines if a patch of omp's edit in 14.9 has the file: its anchors
// do not tell lines, and the result of the call does.
func anchored(text string, is func(string) bool) []Change {
	for line := range strings.Lines(text) {
		path := message.AnchoredPath(line)
		if path != "" && is(path) {
			unknownLines := Change{Lines: true}
			return []Change{unknownLines}
		}
	}
	return nil
}

// sections returns the changes of the file in a patch of omp's edit:
//
//	[a.go#1A2B]
//	PUT 3.=5:
//	+new line
//
// The numbers of lines are those before the patch, so the changes of the last lines come first. An operation
// on a block, or on lines that were cut, does not tell its lines.
func sections(text string, is func(string) bool) []Change {
	if message.IsAnchored([]byte(text)) {
		return anchored(text, is)
	}
	r := sectionReader{is: is}
	for line := range strings.Lines(text) {
		r.addLine(strings.TrimRight(line, "\n"))
	}
	r.endSection()
	return r.changes
}

// sectionReader reads a patch of omp's edit line by line.
type sectionReader struct {
	is      func(path string) bool // the path is the file's
	changes []Change               // of the file, in the sections that have ended

	isFile  bool     // the section is the file's
	section []Change // the operations of the section
	body    []byte   // the new text of the last operation
}

// addLine reads a line without its newline.
func (r *sectionReader) addLine(line string) {
	if strings.HasPrefix(line, "+") {
		r.addBody(line[1:])
		return
	}
	path := message.SectionPath(strings.TrimLeft(line, " \t"))
	if path != "" {
		r.addPath(path, strings.HasPrefix(line, "MV "))
		return
	}
	op := strings.TrimSpace(line)
	isFrame := strings.HasPrefix(op, "***") // the begin or the end of the patch
	if op == "" || isFrame {
		return
	}
	r.endBody()
	r.section = append(r.section, operationOf(op))
}

// addBody adds a line to the text of the last operation.
func (r *sectionReader) addBody(line string) {
	if len(r.section) == 0 {
		return
	}
	r.body = append(r.body, line...)
	r.body = append(r.body, '\n')
}

// addPath begins the section of a path. The target of a move is a second path of the same section.
func (r *sectionReader) addPath(path string, isMoveTarget bool) {
	if !isMoveTarget {
		r.endSection()
		r.isFile = false
	}
	if r.is(path) {
		r.isFile = true
	}
}

// endBody gives the text to the last operation.
func (r *sectionReader) endBody() {
	if len(r.section) > 0 {
		r.section[len(r.section)-1].New = string(r.body)
	}
	r.body = r.body[:0]
}

// endSection adds the changes of a section of the file, the last lines first.
func (r *sectionReader) endSection() {
	r.endBody()
	section := r.section
	r.section = nil
	if !r.isFile {
		return
	}
	slices.SortStableFunc(section, func(a, b Change) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	slices.Reverse(section)
	r.changes = append(r.changes, section...)
}

// operationOf returns the change of a line that operation matches, without its text. For another line it
// returns a change of unknown lines.
func operationOf(line string) Change {
	m := operation.FindStringSubmatch(line)
	if m == nil {
		return Change{Lines: true}
	}
	side := m[1]
	first := m[2]
	last := m[3]
	if last == "" {
		last = first
	}
	if first == "$" {
		return Change{Lines: true, From: atEnd}
	}
	from, err := strconv.Atoi(first)
	if err != nil {
		return Change{Lines: true, From: atEnd} // a number that no file has
	}
	to, _ := strconv.Atoi(last)
	switch side { // a change that replaces no line has To = From-1
	case ">":
		from++
	case "<":
		to--
	}
	return Change{Lines: true, From: from, To: to}
}

// added returns the change of a file that a patch adds.
func added(section []string) Change {
	var text strings.Builder
	for _, line := range section {
		added, isAdded := strings.CutPrefix(line, "+")
		if isAdded {
			text.WriteString(added + "\n")
		}
	}
	return Change{New: text.String(), Whole: true}
}

// hunks returns the changes in the lines of a diff, with or without the two names of files at its head. A
// line @@ begins each change.
func hunks(lines []string) (list []Change) {
	var h hunk
	isBehindNames := false
	for _, line := range lines {
		isName := strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++")
		if isName && !isBehindNames {
			continue
		}
		if line != "" {
			isBehindNames = true
		}
		if strings.HasPrefix(line, "@@") {
			list = h.appendTo(list)
			h = hunk{}
			continue
		}
		h.add(line)
	}
	h.trimEnd()
	return h.appendTo(list)
}

// hunk has the lines of a change in a diff.
type hunk struct {
	before []string
	after  []string
}

// add adds a line of a diff, by the mark at its beginning. Lines with another mark are not part of the change.
func (h *hunk) add(line string) {
	if line == "" {
		if len(h.before) > 0 { // a line of both that lost its blank
			h.before = append(h.before, "")
			h.after = append(h.after, "")
		}
		return
	}
	text := line[1:]
	switch line[0] {
	case '-':
		h.before = append(h.before, text)
	case '+':
		h.after = append(h.after, text)
	case ' ':
		h.before = append(h.before, text)
		h.after = append(h.after, text)
	}
}

// trimEnd drops empty lines at the end of both sides: the end of the diff's text.
func (h *hunk) trimEnd() {
	for len(h.before) > 0 && len(h.after) > 0 {
		lastBefore := len(h.before) - 1
		lastAfter := len(h.after) - 1
		if h.before[lastBefore] != "" || h.after[lastAfter] != "" {
			return
		}
		h.before = h.before[:lastBefore]
		h.after = h.after[:lastAfter]
	}
}

// appendTo appends the change to a list, none for a hunk without lines. Lines that are only added have no
// place: they count as added at the end of the file.
func (h *hunk) appendTo(list []Change) []Change {
	before := strings.Join(h.before, "\n")
	after := strings.Join(h.after, "\n")
	switch {
	case len(h.before) > 0:
		return append(list, Change{
			Old:   before,
			New:   after,
			Lines: true,
		})
	case len(h.after) > 0:
		return append(list, Change{
			New:   after + "\n",
			Lines: true,
			From:  atEnd,
		})
	}
	return list
}
