package blame

import (
	"cmp"
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
	Old, New string
	Whole    bool // New is the whole file
	All      bool // wherever Old is
	// Lines says that Old and New are whole lines.
	Lines bool
	// From and To are the numbers of the lines that New replaces, where Old is not known: none if
	// To is below From. From is 0 where Old is known, and atEnd behind the last line.
	From, To int
}

const atEnd = -1

// arguments are those of one edit, by their roles.
type arguments struct{ of [message.Roles]rawjson.Value }

func argumentsOf(tool string, v rawjson.Value) (a arguments) {
	for m := range v.EachMember {
		a.of[message.ArgumentOf(tool, m.Name()).Role] = m.Value
	}
	return a
}

func (a *arguments) text(role message.ArgumentRole) (text string, ok bool) {
	return textOf(a.of[role]), a.of[role].IsString()
}

// textOf returns a string with the line ends that blame compares.
func textOf(v rawjson.Value) string {
	text, _ := v.Text()
	return strings.ReplaceAll(text, "\r\n", "\n")
}

// Changes returns the changes of one file that the arguments of a tool's call ask for; is knows the
// file by its path.
func Changes(tool string, v rawjson.Value, is func(path string) bool) (list []Change) {
	a := argumentsOf(tool, v)
	dir := textOf(v.Member("workdir"))
	inPatch := func(name string) bool {
		if _, _, isAbs := names.AbsPath(name); dir != "" && !isAbs && !strings.HasPrefix(name, "~") {
			name = path.Join(dir, name)
		}
		return is(name)
	}
	file, named := a.text(message.FileRole)
	isFile := named && is(file)
	verb := a.of[message.VerbRole]
	if len(verb) == 0 {
		verb = a.of[message.CommandRole]
	}
	list = a.changes(isFile, message.WritesWhole(tool, verb), inPatch)
	if old, replaces := a.text(message.OldRole); len(list) == 1 && replaces && old == "" {
		list[0].Whole = true // of a file that is new
	}
	for item := range a.of[message.EditsRole].EachElement {
		inner := argumentsOf(tool, item)
		own, has := inner.text(message.FileRole)
		list = append(list, inner.changes(has && is(own) || !has && isFile, false, inPatch)...)
	}
	for m := range v.EachMember {
		if message.ArgumentOf(tool, m.Name()).Use == message.PatchUse && m.Value.IsString() {
			list = append(list, sections(textOf(m.Value), inPatch)...)
		}
	}
	if len(list) == 0 {
		eachText(v, 0, func(text string) { list = append(list, patched(text, inPatch)...) })
	}
	return list
}

// changes returns the changes of one edit; isFile says that it is of the file.
func (a *arguments) changes(isFile, writes bool, inPatch func(string) bool) []Change {
	if diff, ok := a.text(message.DiffRole); ok {
		if list := patched(diff, inPatch); len(list) > 0 || !isFile {
			return list
		}
		return hunks(strings.Split(diff, "\n"))
	}
	if !isFile {
		return nil
	}
	if text, ok := a.text(message.NewRole); ok {
		if line, err := strconv.Atoi(string(a.of[message.BehindRole])); err == nil {
			return []Change{{New: strings.TrimSuffix(text, "\n") + "\n", Lines: true, From: line + 1, To: line}}
		}
		old, _ := a.text(message.OldRole)
		return []Change{{Old: old, New: text, All: a.of[message.AllRole].Truthy()}}
	}
	if text, ok := a.text(message.ContentRole); ok && writes {
		return []Change{{New: text, Whole: true}}
	}
	return nil
}

// maxDepth is how deep texts in arguments are looked for.
const maxDepth = 4

// eachText calls f for the texts in a value.
func eachText(v rawjson.Value, depth int, f func(string)) {
	if v.IsString() {
		f(textOf(v))
	}
	if depth < maxDepth {
		for m := range v.EachMember {
			eachText(m.Value, depth+1, f)
		}
		for e := range v.EachElement {
			eachText(e, depth+1, f)
		}
	}
}

const (
	patchBegin = "*** Begin Patch"
	patchEnd   = "\n*** End Patch"
)

// patched returns the changes of the file in the patches of apply_patch in a text.
func patched(text string, is func(string) bool) (list []Change) {
	for {
		_, patch, found := strings.Cut(text, patchBegin)
		if !found {
			return list
		}
		if strings.HasPrefix(patch, `\n`) { // in a string
			patch = string(rawjson.AppendDecoded(nil, []byte(patch)))
		}
		patch, text, _ = strings.Cut(patch, patchEnd)
		list = append(list, files(patch, is)...)
	}
}

func files(patch string, is func(string) bool) (list []Change) {
	var section []string
	isFile := false
	adds := false
	end := func() {
		switch {
		case !isFile:
		case adds:
			list = append(list, added(section))
		default:
			list = append(list, hunks(section)...)
		}
		section = nil
	}
	for line := range strings.SplitSeq(patch, "\n") {
		mark, path, _ := strings.Cut(line, ": ")
		switch mark {
		case "*** Add File", "*** Update File", "*** Delete File":
			end()
			isFile = is(path)
			adds = mark == "*** Add File"
		case "*** Move to":
			isFile = isFile || is(path)
		default:
			section = append(section, line)
		}
	}
	end()
	return list
}

// operation is a line of a patch of omp's edit: lines that are replaced or removed, or before or
// after which others are put.
var operation = regexp.MustCompile(`^(?:PUT|CUT) ([<>]?)(\d+|\$)(?:\.=(\d+))?:?$`)

// anchored returns a change of which nothing is known if a patch of omp's edit in 14.9 has the file:
// its anchors do not tell lines, and the result of the call does.
func anchored(text string, is func(string) bool) []Change {
	for line := range strings.Lines(text) {
		if path := message.AnchoredPath(line); path != "" && is(path) {
			return []Change{{Lines: true}}
		}
	}
	return nil
}

// sections returns the changes of the file in a patch of omp's edit. The numbers of lines are those
// before the patch, so the last ones come first. Operations on blocks and on
// lines that were cut do not tell those.
func sections(text string, is func(string) bool) (list []Change) {
	if message.IsAnchored([]byte(text)) {
		return anchored(text, is)
	}
	var section []Change
	var body []byte // of the last operation
	isFile := false
	endBody := func() {
		if len(section) > 0 {
			section[len(section)-1].New = string(body)
		}
		body = body[:0]
	}
	end := func() {
		endBody()
		if isFile {
			slices.SortStableFunc(section, func(a, b Change) int { return cmp.Or(a.From-b.From, a.To-b.To) })
			slices.Reverse(section)
			list = append(list, section...)
		}
		section = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		isBody := strings.HasPrefix(line, "+")
		if path := message.SectionPath(strings.TrimLeft(line, " \t")); path != "" && !isBody {
			if !strings.HasPrefix(line, "MV ") {
				end()
				isFile = false
			}
			isFile = isFile || is(path)
		} else if isBody && len(section) > 0 {
			body = append(append(body, line[1:]...), '\n')
		} else if op := strings.TrimSpace(line); op != "" && !isBody && !strings.HasPrefix(op, "***") {
			endBody()
			section = append(section, operationOf(op))
		}
	}
	end()
	return list
}

// operationOf returns the change without its text that a line of a patch of omp's edit asks for.
func operationOf(line string) Change {
	m := operation.FindStringSubmatch(line)
	if m == nil {
		return Change{Lines: true}
	}
	from, err := strconv.Atoi(m[2])
	last := m[3]
	if last == "" {
		last = m[2]
	}
	to, _ := strconv.Atoi(last)
	switch {
	case err != nil:
		from = atEnd
		to = 0
	case m[1] == ">":
		from++
	case m[1] == "<":
		to--
	}
	return Change{Lines: true, From: from, To: to}
}

// added returns the change of a file that a patch adds.
func added(section []string) Change {
	var text strings.Builder
	for _, line := range section {
		if rest, ok := strings.CutPrefix(line, "+"); ok {
			text.WriteString(rest + "\n")
		}
	}
	return Change{New: text.String(), Whole: true}
}

// hunks returns the changes in the lines of a diff: a line @@ begins each.
func hunks(lines []string) (list []Change) {
	var before, after []string
	begun := false // behind the names of the files
	end := func() {
		switch {
		case len(before) > 0:
			list = append(list, Change{Old: strings.Join(before, "\n"), New: strings.Join(after, "\n"), Lines: true})
		case len(after) > 0:
			list = append(list, Change{New: strings.Join(after, "\n") + "\n", Lines: true, From: atEnd})
		}
		before = nil
		after = nil
	}
	for _, line := range lines {
		isName := !begun && (strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++"))
		begun = begun || line != "" && !isName
		switch {
		case strings.HasPrefix(line, "@@"):
			end()
		case isName, strings.HasPrefix(line, "*** "):
		case strings.HasPrefix(line, "-"):
			before = append(before, line[1:])
		case strings.HasPrefix(line, "+"):
			after = append(after, line[1:])
		case strings.HasPrefix(line, " "):
			before = append(before, line[1:])
			after = append(after, line[1:])
		case line == "" && len(before) > 0: // a line that lost its blank
			before = append(before, "")
			after = append(after, "")
		}
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == "" && after[len(after)-1] == "" {
		before = before[:len(before)-1]
		after = after[:len(after)-1] // the end of the text
	}
	end()
	return list
}
