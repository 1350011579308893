package blame

import (
	"regexp"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// Read returns the changes of a file that the calls in an entry have made; is knows the file by its
// path. A call that failed has made none. For lines that a call names by their numbers, the result has the
// texts. The error is one of the storage.
func Read(snap *sessioncore.Snapshot, e sessioncore.Entry, is func(path string) bool) (list []Change, err error) {
	return callIDs{}.read(snap, e, is)
}

// callIDs has the ids of the calls by the entries of the results that were read, so that a result is not read once
// more for another call.
type callIDs map[sessioncore.Entry]string

// read is Read for one of several entries of a session.
func (c callIDs) read(
	snap *sessioncore.Snapshot, e sessioncore.Entry, is func(path string) bool,
) (list []Change, err error) {
	text, err := snap.ShownText(e)
	if err != nil {
		return nil, err
	}
	results := map[string]editResult{} // by the ids of the calls
	var calls []message.Members
	m := message.Read(snap.Message(e, text))
	message.EachCall(m[message.Content], func(call *message.Members) {
		calls = append(calls, *call)
		id, hasID := call[message.ID].Text()
		if hasID {
			results[id] = editResult{}
		}
	})
	err = c.readResults(snap, e, results, is)
	if err != nil {
		return nil, err
	}
	list = nestedChanges(&m, is) // the entry may be a result without its call
	for _, call := range calls {
		id, _ := call[message.ID].Text()
		list = append(list, changesOf(&call, results[id], is)...)
	}
	return list, nil
}

// changesOf returns the changes of the file by a call with a result, which is zero if none was found: by the tool's
// own calls; else from the call's arguments, or from the result where the arguments do not tell the replaced text.
func changesOf(call *message.Members, result editResult, is func(path string) bool) []Change {
	if len(result.nested) > 0 {
		return result.nested
	}
	if result.failed {
		return nil
	}
	tool, _ := call[message.Name].Text()
	changes := Changes(tool, call[message.Arguments], is)
	isUnplaced := func(c Change) bool {
		return c.Old == "" && !c.Whole
	}
	isPlaced := len(changes) > 0 && !slices.ContainsFunc(changes, isUnplaced)
	if len(result.changes) > 0 && !isPlaced {
		return result.changes
	}
	return changes
}

// maxBetween bounds the entries behind a call among which its result is sought.
const maxBetween = 1000

// editResult is the result of a call that may have changed the file.
type editResult struct {
	failed  bool
	changes []Change // of the file, in the diff that the result has
	nested  []Change // of the file, by calls that the tool made itself, also before an error
}

// readResults reads the results of the calls of an entry into results, which has their ids.
func (c callIDs) readResults(
	snap *sessioncore.Snapshot, e sessioncore.Entry, results map[string]editResult, is func(path string) bool,
) error {
	isWanted := func(id string) bool {
		_, isKnown := results[id]
		return isKnown
	}
	return c.eachResult(snap, e, isWanted, len(results), func(id string, m *message.Members) {
		results[id] = editResult{
			failed:  isFailed(m),
			changes: changesShown(m[message.Details], is),
			nested:  nestedChanges(m, is),
		}
	})
}

// isFailed reports whether a result says that its call failed.
func isFailed(m *message.Members) bool {
	if m[message.IsError].Truthy() {
		return true
	}
	succeeded := m[message.Details].Member("success")
	return !succeeded.Missing() && !succeeded.Truthy()
}

// eachResult calls f for the results of calls of entry e by their ids, until it has found count results with
// a wanted id. It ends at maxBetween entries behind e. The results that it reads are added to c.
func (c callIDs) eachResult(
	snap *sessioncore.Snapshot, e sessioncore.Entry, isWanted func(id string) bool, count int,
	f func(id string, m *message.Members),
) error {
	reader := sessioncore.NewEntryReader(snap)
	end := min(sessioncore.Entry(snap.Len()), e+maxBetween+1)
	for next := e + 1; next < end; next++ {
		if count == 0 {
			return nil
		}
		if snap.Role(next) != sessioncore.RoleToolResult {
			continue
		}
		id, isKnown := c[next]
		if isKnown && !isWanted(id) {
			continue
		}
		text, err := reader.Read(next)
		if err != nil {
			return err
		}
		m := message.Read(snap.Message(next, text))
		id, hasID := m[message.CallID].Text()
		c[next] = id
		if hasID && isWanted(id) {
			f(id, &m)
			count--
		}
	}
	return nil
}

// nestedChanges returns the changes of the file by the calls that a tool made itself, as its result
// records them. A call that failed made none. If the result does not record the text of a change, it is a
// change of unknown lines.
func nestedChanges(m *message.Members, is func(path string) bool) (list []Change) {
	message.EachNested(m, func(call *message.Members) {
		if call[message.IsError].Truthy() {
			return
		}
		tool, _ := call[message.Name].Text()
		changes := Changes(tool, call[message.Arguments], is)
		if len(changes) == 0 && writes(tool, call[message.Arguments], is) {
			changes = []Change{{Lines: true}}
		}
		list = append(list, changes...)
	})
	return list
}

// writes reports whether a call of a tool that changes files names the file.
func writes(tool string, arguments rawjson.Value, is func(path string) bool) bool {
	isNamed := false
	message.EachPath(tool, arguments, func(name string) bool {
		isFile := is(name)
		if isFile {
			isNamed = true
		}
		return isFile
	})
	changesFiles := tool == "edit" || message.WritesWhole(tool, nil)
	return isNamed && changesFiles
}

// changesShown returns the changes of the file in the details of a result, which have one of these forms:
//
//	{"changes": {"/a.go": {"type": "update", "unified_diff": "…"}}}
//	{"perFileResults": [{"path": "/a.go", "diff": "…"}]}
//	{"diff": "…"}
func changesShown(details rawjson.Value, is func(path string) bool) (list []Change) {
	for m := range details.Member("changes").EachMember {
		list = append(list, changesByPath(m, is)...)
	}
	if len(list) > 0 {
		return list
	}
	diff := details.Member("diff")
	for file := range details.Member("perFileResults").EachElement {
		path, _ := file.Member("path").Text()
		if is(path) {
			diff = file.Member("diff")
		}
	}
	return numberedHunks(textOf(diff))
}

// changesByPath returns the changes in a member with a path as its key, none if that is not the file's.
func changesByPath(m rawjson.Member, is func(path string) bool) []Change {
	path, _ := m.Key.Text()
	newPath, _ := m.Value.Member("move_path").Text()
	isFile := is(path)
	if !isFile && newPath != "" {
		isFile = is(newPath)
	}
	if !isFile {
		return nil
	}
	content := m.Value.Member("content")
	if m.Value.Member("type").Is("add") && content.IsString() {
		return []Change{{New: textOf(content), Whole: true}}
	}
	diff := textOf(m.Value.Member("unified_diff"))
	return hunks(strings.Split(diff, "\n"))
}

// numberedHunks returns the changes in a diff with numbers before its lines.
func numberedHunks(diff string) []Change {
	var lines []string
	for line := range strings.Lines(diff) {
		m := numberedLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		text := m[1] + m[2]
		if text == " ..." {
			text = "@@"
		}
		lines = append(lines, text)
	}
	return hunks(lines)
}

// numberedLine matches a line of a diff with numbers: a mark, the number of the line, and its text. Three
// dots stand for lines that are left out.
var numberedLine = regexp.MustCompile(`^([-+ ]) *\d+\|(.*)$`)
