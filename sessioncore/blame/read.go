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
// path. A call whose result is an error has made none. Of lines that a call names by their numbers
// the result has the texts. The error is one of the storage.
func Read(snap *sessioncore.Snapshot, e sessioncore.Entry, is func(path string) bool) (list []Change, err error) {
	return callIDs{}.read(snap, e, is)
}

// callIDs has the ids of the calls of results that were read, so that each is read for its own call
// alone.
type callIDs map[sessioncore.Entry]string

// read is Read for one of several entries of a session.
func (c callIDs) read(
	snap *sessioncore.Snapshot, e sessioncore.Entry, is func(path string) bool,
) (list []Change, err error) {
	text, err := snap.ShownText(e)
	if err != nil {
		return nil, err
	}
	results := map[string]editResult{}
	var calls []message.Members
	m := message.Read(snap.Message(e, text))
	message.EachCall(m[message.Content], func(b *message.Members) { calls = append(calls, *b) })
	for _, call := range calls {
		if id, ok := call[message.ID].Text(); ok {
			results[id] = editResult{}
		}
	}
	if err := c.readResults(snap, e, results, is); err != nil {
		return nil, err
	}
	list = nestedChanges(&m, is) // of a result without its call
	for _, call := range calls {
		id, _ := call[message.ID].Text()
		tool, _ := call[message.Name].Text()
		if nested := results[id].nested; len(nested) > 0 {
			list = append(list, nested...)
			continue
		}
		if results[id].failed {
			continue
		}
		changes := Changes(tool, call[message.Arguments], is)
		isUnplaced := func(c Change) bool { return c.Old == "" && !c.Whole }
		placed := len(changes) > 0 && !slices.ContainsFunc(changes, isUnplaced)
		if shown := results[id].changes; len(shown) > 0 && !placed {
			changes = shown
		}
		list = append(list, changes...)
	}
	return list, nil
}

// maxBetween is how many entries behind a call are looked at for its result.
const maxBetween = 1000

// editResult is that of a call: whether it is an error, and the changes of the file in the diff that it
// has. nested are the changes by calls of the tool itself, also before an error.
type editResult struct {
	failed  bool
	changes []Change
	nested  []Change
}

// readResults reads the results of the calls of an entry.
func (c callIDs) readResults(
	snap *sessioncore.Snapshot, e sessioncore.Entry, results map[string]editResult, is func(path string) bool,
) error {
	return c.eachResult(snap, e, func(id string) bool {
		_, asked := results[id]
		return asked
	}, len(results), func(id string, m *message.Members) {
		results[id] = editResult{
			failed:  isFailed(m),
			changes: changesShown(m[message.Details], is),
			nested:  nestedChanges(m, is),
		}
	})
}

// isFailed reports whether a result says that its call failed.
func isFailed(m *message.Members) bool {
	succeeded := m[message.Details].Member("success")
	return m[message.IsError].Truthy() || !succeeded.Missing() && !succeeded.Truthy()
}

// eachResult calls f for the results of count calls of an entry that are asked for by their ids.
func (c callIDs) eachResult(
	snap *sessioncore.Snapshot, e sessioncore.Entry, isAsked func(id string) bool, count int,
	f func(id string, m *message.Members),
) error {
	reader := sessioncore.NewEntryReader(snap)
	for next := e + 1; count > 0 && int(next) < snap.Len() && next <= e+maxBetween; next++ {
		if snap.Role(next) != sessioncore.RoleToolResult {
			continue
		}
		id, isKnown := c[next]
		if isKnown && !isAsked(id) {
			continue
		}
		text, err := reader.Read(next)
		if err != nil {
			return err
		}
		m := message.Read(snap.Message(next, text))
		id, ok := m[message.CallID].Text()
		c[next] = id
		if ok && isAsked(id) {
			f(id, &m)
			count--
		}
	}
	return nil
}

// nestedChanges returns the changes of the file by the calls that a tool made itself, as its result
// records them. A call that failed made none. Where the text of a change is not recorded, nothing is
// known of it.
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
		isNamed = isNamed || is(name)
		return is(name)
	})
	return isNamed && (tool == "edit" || message.WritesWhole(tool, nil))
}

// changesShown returns the changes of the file in the diff of a result, or in that which the result
// has of this file.
func changesShown(details rawjson.Value, is func(path string) bool) (list []Change) {
	for m := range details.Member("changes").EachMember {
		path, _ := m.Key.Text()
		to, _ := m.Value.Member("move_path").Text()
		content := m.Value.Member("content")
		switch {
		case !is(path) && (to == "" || !is(to)):
		case m.Value.Member("type").Is("add") && content.IsString():
			list = append(list, Change{New: textOf(content), Whole: true})
		default:
			list = append(list, hunks(strings.Split(textOf(m.Value.Member("unified_diff")), "\n"))...)
		}
	}
	if len(list) > 0 {
		return list
	}
	diff := details.Member("diff")
	for file := range details.Member("perFileResults").EachElement {
		if path, _ := file.Member("path").Text(); is(path) {
			diff = file.Member("diff")
		}
	}
	var lines []string
	for line := range strings.Lines(textOf(diff)) {
		m := numberedLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		switch {
		case m == nil:
		case m[1]+m[2] == " ...":
			lines = append(lines, "@@")
		default:
			lines = append(lines, m[1]+m[2])
		}
	}
	return hunks(lines)
}

// numberedLine is a line of such a diff: a mark, the number of the line, and its text. Three dots
// stand for lines that are left out.
var numberedLine = regexp.MustCompile(`^([-+ ]) *\d+\|(.*)$`)
