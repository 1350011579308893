package blame

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
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
type arguments struct {
	of  [message.Roles]rawjson.Value
	all bool
}

func argumentsOf(tool string, v rawjson.Value) (a arguments) {
	for m := range v.EachMember {
		name := m.Name()
		a.of[message.ArgumentOf(tool, name).Role] = m.Value
		if name == "replaceAll" || name == "allowMultiple" {
			a.all = m.Value.Truthy()
		}
	}
	return a
}

func (a *arguments) text(role message.ArgumentRole) (text string, ok bool) {
	if !a.of[role].IsString() {
		return "", false
	}
	text, _ = a.of[role].Text()
	return text, true
}

// Changes returns the changes of one file that the arguments of a tool's call ask for; is knows the
// file by its path.
func Changes(tool string, v rawjson.Value, is func(path string) bool) (list []Change) {
	if v.IsString() {
		text, _ := v.Text()
		return patched(text, is)
	}
	a := argumentsOf(tool, v)
	path, named := a.text(message.FileRole)
	isFile := named && is(path)
	verb, _ := a.text(message.VerbRole)
	if command, ok := a.text(message.CommandRole); ok && verb == "" {
		verb = command
	}
	writes := strings.Contains(strings.ToLower(tool), "write") || verb == "create"
	list = a.changes(isFile, writes, is)
	for item := range a.of[message.EditsRole].EachElement {
		inner := argumentsOf(tool, item)
		own, has := inner.text(message.FileRole)
		list = append(list, inner.changes(has && is(own) || !has && isFile, false, is)...)
	}
	for m := range v.EachMember {
		if message.ArgumentOf(tool, m.Name()).Use == message.PatchUse && m.Value.IsString() {
			text, _ := m.Value.Text()
			list = append(list, sections(text, is)...)
		}
	}
	if len(list) == 0 {
		eachText(v, 0, func(text string) { list = append(list, patched(text, is)...) })
	}
	return list
}

// changes returns the changes of one edit; isFile says that it is of the file.
func (a *arguments) changes(isFile, writes bool, is func(string) bool) []Change {
	if diff, ok := a.text(message.DiffRole); ok {
		if list := patched(diff, is); len(list) > 0 || !isFile {
			return list
		}
		return hunks(strings.Split(diff, "\n"))
	}
	if !isFile {
		return nil
	}
	if text, ok := a.text(message.NewRole); ok {
		old, _ := a.text(message.OldRole)
		return []Change{{Old: old, New: text, All: a.all}}
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
		text, _ := v.Text()
		f(text)
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
	patchEnd   = "*** End Patch"
)

// patched returns the changes of the file in a patch of apply_patch, wherever it begins in a text.
func patched(text string, is func(string) bool) (list []Change) {
	_, patch, found := strings.Cut(text, patchBegin)
	if !found {
		return nil
	}
	patch, _, _ = strings.Cut(patch, patchEnd)
	var section []string
	isFile, adds := false, false
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
	for _, line := range strings.Split(patch, "\n") {
		mark, path, _ := strings.Cut(strings.TrimRight(line, "\r"), ": ")
		switch mark {
		case "*** Add File", "*** Update File", "*** Delete File":
			end()
			isFile, adds = is(path), mark == "*** Add File"
		case "*** Move to":
			isFile = isFile || is(path)
		default:
			section = append(section, line)
		}
	}
	end()
	return list
}

// operation is a line of a patch of omp's edit: lines that are replaced, or removed, or after which
// others are put.
var operation = regexp.MustCompile(`^(?:PUT|CUT) (?:(\d+)(?:\.=(\d+))?|>(\d+|\$)):?$`)

// sections returns the changes of the file in a patch of omp's edit. The numbers of lines are those
// before the patch, so the last ones come first.
func sections(text string, is func(string) bool) (list []Change) {
	isFile := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if path := message.SectionPath(strings.TrimLeft(line, " \t")); path != "" {
			isFile = is(path)
			continue
		}
		if !isFile {
			continue
		}
		if op := operation.FindStringSubmatch(strings.TrimSpace(line)); op != nil {
			c := Change{From: atEnd, Lines: true}
			switch after, err := strconv.Atoi(op[3]); {
			case op[1] != "":
				c.From, _ = strconv.Atoi(op[1])
				c.To, _ = strconv.Atoi(cmp.Or(op[2], op[1]))
			case err == nil:
				c.From, c.To = after+1, after
			}
			list = append(list, c)
		} else if added, ok := strings.CutPrefix(line, "+"); ok && len(list) > 0 {
			list[len(list)-1].New += added + "\n"
		}
	}
	slices.SortStableFunc(list, func(a, b Change) int { return cmp.Compare(b.From, a.From) })
	return list
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
		if len(before)+len(after) > 0 {
			list = append(list, Change{Old: strings.Join(before, "\n"), New: strings.Join(after, "\n"), Lines: true})
		}
		before, after = nil, nil
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
			before, after = append(before, line[1:]), append(after, line[1:])
		case line == "" && len(before) > 0: // a line that lost its blank
			before, after = append(before, ""), append(after, "")
		}
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == "" && after[len(after)-1] == "" {
		before, after = before[:len(before)-1], after[:len(after)-1] // the end of the text
	}
	end()
	return list
}
