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
	all     []*paths // the paths of the file, and of the places where it was before
	others  *Others
	results map[sessioncore.Entry][]resultPaths // the results with the file, by the entries of their calls
	prompt  Prompts

	time  time.Time // of the entry that is read
	found []string  // each tool with a name of the file in that entry: "read a.go"
	uses  []string  // each tool with a clean path in the current call, so that one is found once
}

// resultPaths has the file names in a call's result.
type resultPaths struct {
	call  string // its id
	tool  rawjson.Value
	names []namedFile
}

// namedFile is a file name in a result.
type namedFile struct {
	nested string // " " and the tool that the called tool called with the name, or ""
	name   string
}

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

// callsOf returns entries with each result replaced by the entry of its call if it names the file, and
// left out if not; a result without a call stays. They are the newest first, each once. read returns the
// text of an entry. callsOf keeps the results for Entry.
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

// result adds the names of the file in a result, and returns the entry of its call, or NoEntry if it has no such
// name.
func (c *touchChecker) result(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value,
) (sessioncore.Entry, error) {
	m := message.Read(s.Message(e, text))
	c.time = s.Time(e)
	r := c.namesIn(&m)
	if len(r.names) == 0 {
		return sessioncore.NoEntry, nil
	}
	r.call, _ = m[message.CallID].Text()
	r.tool = slices.Clone(m[message.ToolName]) // the text of the entry lasts until the next read
	entry, err := callOf(s, e, r.call)
	c.results[entry] = append(c.results[entry], r)
	return entry, err
}

// fileOf returns the clean path of a name in a call, if it is the searched file or below it, else "". An
// earlier path of the file counts up to the time when the file was moved.
func (c *touchChecker) fileOf(name string) string {
	for _, p := range c.all {
		isLate := !p.until.IsZero() && c.time.After(p.until)
		if isLate {
			continue
		}
		file := p.fileOf(name)
		if file != "" {
			return file
		}
	}
	return ""
}

// namesIn returns the names of the file in a result: among the files that the tool changed, and in the calls
// that it made itself.
func (c *touchChecker) namesIn(m *message.Members) (r resultPaths) {
	size := 0
	add := func(nested, name string) bool {
		isOfFile := c.fileOf(name) != ""
		if isOfFile && len(r.names) < maxNamed && size < maxNames {
			r.names = append(r.names, namedFile{nested: nested, name: name})
			size += len(name)
		}
		return isOfFile
	}
	message.EachResultPath(m[message.Details], func(name string) bool {
		return add("", name)
	})
	message.EachNested(m, func(call *message.Members) {
		tool, _ := call[message.Name].Text()
		message.EachPath(tool, call[message.Arguments], func(name string) bool {
			return add(" "+tool, name)
		})
	})
	return r
}

// callOf returns the entry of a result's call, by its id, or the result itself if the call is not among the
// entries before it.
func callOf(s *sessioncore.Snapshot, result sessioncore.Entry, id string) (sessioncore.Entry, error) {
	answers := 0
	e := s.Parent(result)
	for range maxCallSteps {
		if e == sessioncore.NoEntry || answers == maxAnswers {
			return result, nil
		}
		if s.IsMessage(e, sessioncore.RoleAssistant) {
			text, err := s.EntryText(e)
			if err != nil {
				return result, err
			}
			if hasCall(s.Message(e, text), id) {
				return e, nil
			}
			answers++
		}
		e = s.Parent(e)
	}
	return result, nil
}

// hasCall reports whether a message, which may be nil, has the call with an id.
func hasCall(m rawjson.Value, id string) bool {
	isThere := false
	message.EachCall(m.Member("content"), func(call *message.Members) {
		if call[message.ID].Is(id) {
			isThere = true
		}
	})
	return isThere
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
	message.EachCall(s.Message(e, text).Member("content"), func(call *message.Members) {
		results = c.addCall(call, results)
	})
	for _, r := range results { // those without a call
		c.uses = c.uses[:0]
		c.addResult(r.tool, r)
	}
	if len(c.found) == 0 {
		return Hit{}, false
	}
	hit = Hit{
		Line:   lineAt([]byte(strings.Join(c.found, callsBetween)), 0),
		Prompt: c.prompt.Before(s, e),
		calls:  slices.Clone(c.found),
	}
	return hit, true
}

// addCall adds the names in a call and in its results, and returns the results of other calls.
func (c *touchChecker) addCall(call *message.Members, results []resultPaths) (others []resultPaths) {
	c.uses = c.uses[:0]
	tool, _ := call[message.Name].Text()
	message.EachPath(tool, call[message.Arguments], func(name string) bool {
		return c.add(tool, name)
	})
	for _, r := range results {
		if call[message.ID].Is(r.call) {
			c.addResult(call[message.Name], r)
		} else {
			others = append(others, r)
		}
	}
	return others
}

// addResult adds the names in a result of a tool.
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
	if file == "" {
		return false
	}
	if c.others != nil {
		c.others.add(file)
	}
	use := tool + " " + file
	hasRoom := len(c.uses) < maxNamed && len(c.found) < maxNamed
	if hasRoom && !slices.Contains(c.uses, use) {
		c.uses = append(c.uses, use)
		c.found = append(c.found, strings.TrimSpace(tool+" "+name))
	}
	return true
}
