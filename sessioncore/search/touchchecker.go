package search

import (
	"context"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// touchChecker checks entries of a session against a Touched.
type touchChecker struct {
	all     []*paths // of the file, and of the places where it was before
	others  *Others
	time    time.Time                           // of the entry that is read
	results map[sessioncore.Entry][]resultPaths // those with the file, by the entries of their calls
	found   []string
	uses    []string // of the current call: each tool with a resolved file
	prompt  Prompts
}

// resultPaths has the file names in a call's result.
type resultPaths struct {
	call  string // its id
	tool  rawjson.Value
	names []namedFile
}

// namedFile is a file name, and the tool that the called one called with it, or "".
type namedFile struct{ nested, name string }

const (
	// maxCallSteps bounds the entries between a result and its call, and maxAnswers the answers
	// among them: the others are results and notes of the client.
	maxCallSteps = 1000
	maxAnswers   = 16
	// maxNamed bounds the files of a call, and maxNames the names of a result in bytes.
	maxNamed = 64
	maxNames = 1 << 10
)

// Title implements Checker.
func (c *touchChecker) Title(rawjson.Value, time.Time) (line string, ok bool) { return "", false }

// callsOf replaces each result among the entries by the entry of its call if it names the file,
// else omits it. A result without a call stays.
func (c *touchChecker) callsOf(ctx context.Context, s *sessioncore.Snapshot, entries []sessioncore.Entry,
	read func(sessioncore.Entry) (rawjson.Value, error)) ([]sessioncore.Entry, error) {
	var all []sessioncore.Entry
	for _, e := range entries {
		if s.IsMessage(e, sessioncore.RoleToolResult) {
			err := ctx.Err()
			if err != nil {
				return nil, err
			}
			text, err := read(e)
			if err != nil {
				return nil, err
			}
			e, err = c.result(s, e, text)
			if err != nil {
				return nil, err
			}
		}
		if e != sessioncore.NoEntry {
			all = append(all, e)
		}
	}
	if len(c.results) > 0 {
		slices.SortFunc(all, s.CompareNewest)
		all = slices.Compact(all)
	}
	return all, nil
}

// result adds the names in a result, and returns the entry of its call, or NoEntry.
func (c *touchChecker) result(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value,
) (sessioncore.Entry, error) {
	m := message.Read(s.Message(e, text))
	c.time = s.Time(e)
	r := c.namesIn(&m)
	if len(r.names) == 0 {
		return sessioncore.NoEntry, nil
	}
	r.call, _ = m[message.CallID].Text()
	r.tool = slices.Clone(m[message.ToolName])
	entry, err := callOf(s, e, r.call)
	c.results[entry] = append(c.results[entry], r)
	return entry, err
}

// fileOf returns the file of a path in a call, if it is the searched file, or an earlier one of it at its
// time, or below that, else "".
func (c *touchChecker) fileOf(name string) (file string) {
	for _, p := range c.all {
		isLate := !p.until.IsZero() && c.time.After(p.until)
		if file == "" && !isLate {
			file = p.fileOf(name)
		}
	}
	return file
}

// namesIn returns the names of the file in a result: of files that the tool changed, and of those
// in the calls that it made itself.
func (c *touchChecker) namesIn(m *message.Members) (r resultPaths) {
	size := 0
	add := func(nested, name string) bool {
		isOfFile := c.fileOf(name) != ""
		if isOfFile && len(r.names) < maxNamed && size < maxNames {
			r.names = append(r.names, namedFile{nested, name})
			size += len(name)
		}
		return isOfFile
	}
	message.EachResultPath(m[message.Details], func(name string) bool { return add("", name) })
	message.EachNested(m, func(call *message.Members) {
		tool, _ := call[message.Name].Text()
		message.EachPath(tool, call[message.Arguments], func(name string) bool { return add(" "+tool, name) })
	})
	return r
}

// callOf returns the entry of a result's call, by its id, or the result itself.
func callOf(s *sessioncore.Snapshot, result sessioncore.Entry, id string) (sessioncore.Entry, error) {
	answers := 0
	isIn := false
	e := s.Parent(result)
	for n := 0; e != sessioncore.NoEntry && n < maxCallSteps && answers < maxAnswers; n++ {
		if s.IsMessage(e, sessioncore.RoleAssistant) {
			text, err := s.EntryText(e)
			if err != nil {
				return result, err
			}
			message.EachCall(s.Message(e, text).Member("content"), func(b *message.Members) {
				isIn = isIn || b[message.ID].Is(id)
			})
			if isIn {
				return e, nil
			}
			answers++
		}
		e = s.Parent(e)
	}
	return result, nil
}

// callsBetween stands between two calls in the line of a hit.
const callsBetween = "; "

// Entry implements Checker. The line has each tool with its files, then the results'.
func (c *touchChecker) Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool) {
	if s.Kind(e) != sessioncore.TypeMessage {
		return Hit{}, false
	}
	c.time = s.Time(e)
	c.found = c.found[:0]
	results := c.results[e]
	message.EachCall(s.Message(e, text).Member("content"), func(b *message.Members) { results = c.call(b, results) })
	for _, r := range results { // without a call
		c.uses = c.uses[:0]
		c.addResult(r.tool, r)
	}
	if len(c.found) == 0 {
		return Hit{}, false
	}
	line := lineAt([]byte(strings.Join(c.found, callsBetween)), 0)
	return Hit{Line: line, calls: slices.Clone(c.found), Prompt: c.prompt.Before(s, e)}, true
}

// call adds the names in a call and in its results, and returns the results of other calls.
func (c *touchChecker) call(b *message.Members, results []resultPaths) (others []resultPaths) {
	c.uses = c.uses[:0]
	tool, _ := b[message.Name].Text()
	message.EachPath(tool, b[message.Arguments], func(name string) bool { return c.add(tool, name) })
	for _, r := range results {
		if b[message.ID].Is(r.call) {
			c.addResult(b[message.Name], r)
		} else {
			others = append(others, r)
		}
	}
	return others
}

func (c *touchChecker) addResult(tool rawjson.Value, r resultPaths) {
	name, _ := tool.Text()
	for _, file := range r.names {
		c.add(name+file.nested, file.name)
	}
}

// add adds a path of a call or its result, once for each tool and file. It reports whether it
// matches.
func (c *touchChecker) add(tool, name string) bool {
	file := c.fileOf(name)
	if file != "" && c.others != nil {
		c.others.add(file)
	}
	use := tool + " " + file
	if file != "" && len(c.uses) < maxNamed && len(c.found) < maxNamed && !slices.Contains(c.uses, use) {
		c.uses = append(c.uses, use)
		c.found = append(c.found, strings.TrimSpace(tool+" "+name))
	}
	return file != ""
}
