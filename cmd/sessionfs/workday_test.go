//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pen is a line of a file and its last author: "agent entry prompt" for an edit of an agent, "" for the person.
type pen struct{ text, by string }

// journal is a file of sessions that an agent is writing.
type journal struct {
	name  string
	lines []string
}

func (j *journal) add(line map[string]any) {
	text, _ := json.Marshal(line)
	j.lines = append(j.lines, string(text))
}

// workday is ten files that three agents and a person change, and the sessions of the agents.
type workday struct {
	*rand.Rand
	home     string
	now      time.Time
	edits    int
	turns    int // calls that failed too
	files    [10][]pen
	journals map[string][]*journal
	written  map[string]bool // texts of lines that agents wrote
}

// perSession is how many turns a session has.
const perSession = 25

// TestBlameOfWorkday: three agents make 300 edits of ten files, as their session files have them, and a person changes the
// files in between, but on the fourth day. The lines name the edits that put them there.
func TestBlameOfWorkday(t *testing.T) {
	var sum tally
	const alone = 3
	for seed := range uint64(alone + 1) {
		s := newStore(t, user{"user", os.Geteuid()})
		w := &workday{
			Rand:     rand.New(rand.NewPCG(seed, 3)),
			home:     s.dir,
			now:      time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC),
			journals: map[string][]*journal{},
			written:  map[string]bool{},
		}
		for w.edits < 300 {
			w.agent(w.IntN(len(w.files)))
			for range w.IntN(3) {
				if seed != alone {
					w.person(w.IntN(len(w.files)))
				}
			}
		}
		for range 30 {
			if seed != alone {
				w.copies(w.IntN(len(w.files)))
			}
		}
		if seed == alone {
			t.Logf("%d of %d lines name their edit, %d of %d copies name one", sum.right, sum.lines, sum.named, sum.copies)
			require.GreaterOrEqual(t, 100*sum.right, 99*sum.lines)
			require.Equal(t, 3*30, sum.copies)
			require.LessOrEqual(t, 3*sum.named, sum.copies)
			sum = tally{}
		}
		w.save(t)
		for n := range w.files {
			w.check(t, n, s.run("blame", "-s", "all", "--json", w.path(n)).ok(t).stdout, &sum)
		}
	}
	require.Equal(t, sum.lines, sum.right, "without a person all edits apply")
}

// tally counts the lines that agents wrote last, and which of them name that edit; and the lines of the person that are
// like one of an agent, and which of them name one.
type tally struct{ lines, right, copies, named int }

// check compares the output of blame --json for a file with its authors, and adds to the sums.
func (w *workday) check(t *testing.T, n int, said string, sum *tally) {
	told := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	require.Len(t, told, len(w.files[n]))
	for i, l := range w.files[n] {
		var is struct {
			Text, Agent, Entry, Prompt string
			Exact                      bool
		}
		require.NoError(t, json.Unmarshal([]byte(told[i]), &is))
		require.Equal(t, l.text, is.Text)
		by := strings.TrimSpace(is.Agent + " " + is.Entry + " " + is.Prompt)
		switch {
		case l.by != "":
			sum.lines++
			if by == l.by {
				sum.right++
			}
		case !w.written[l.text]:
			require.Empty(t, by, "the person alone wrote %q", l.text)
		default:
			sum.copies++
			if by != "" {
				sum.named++
				require.False(t, is.Exact, "%q", l.text)
			}
		}
	}
}

// path returns the path of a file.
func (w *workday) path(n int) string {
	return filepath.Join(w.home, "work", fmt.Sprintf("part%d.go", n))
}

// save writes the files and the sessions.
func (w *workday) save(t *testing.T) {
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for n := range w.files {
		write(w.path(n), prefixed("", w.files[n]))
	}
	for _, all := range w.journals {
		for _, j := range all {
			write(filepath.Join(w.home, j.name), strings.Join(j.lines, "\n")+"\n")
		}
	}
}

// person adds, changes or removes a line. No agent writes the like.
func (w *workday) person(n int) {
	lines := w.files[n]
	if len(lines) < 5 {
		return
	}
	at := w.IntN(len(lines) - 3)
	remark := pen{text: fmt.Sprintf("\t// remark %d", w.IntN(1e6))}
	switch w.IntN(3) {
	case 0:
		w.files[n] = slices.Insert(lines, at, remark)
	case 1:
		lines[at] = pen{text: lines[at].text + remark.text}
	case 2:
		w.files[n] = slices.Delete(lines, at, at+1)
	}
}

// copies adds a line of the person that is like one of an agent.
func (w *workday) copies(n int) {
	for {
		lines := w.files[n]
		l := lines[w.IntN(len(lines))]
		isAgents := l.by != "" && strings.Contains(l.text, "value")
		if !isAgents {
			continue
		}
		above := w.IntN(len(lines) - 1)
		isBeside := lines[above].text == l.text || lines[above+1].text == l.text // nobody could tell which is which
		if !isBeside {
			w.files[n] = slices.Insert(lines, above+1, pen{text: l.text})
			return
		}
	}
}

// newLines makes lines as programs have them, some of which are the same everywhere; none is among old, as nobody could
// tell whether it stayed.
func (w *workday) newLines(count int, old []pen) (list []pen) {
	common := []string{"}", "", "\treturn nil", "\t}", "\tif err != nil {", "\t\treturn err"}
	for range count {
		l := pen{text: fmt.Sprintf("\tvalue%d := call%d(%d)", w.IntN(200), w.IntN(50), w.IntN(1000))}
		if w.IntN(3) == 0 {
			l.text = common[w.IntN(len(common))]
		}
		isOld := slices.ContainsFunc(old, func(o pen) bool { return o.text == l.text })
		if !isOld {
			list = append(list, l)
		}
	}
	return list
}

// place chooses lines whose text is in the file once, or all lines.
func (w *workday) place(n int) (from, to int) {
	lines := w.files[n]
	text := prefixed("", lines)
	from = w.IntN(len(lines))
	to = min(from+1+w.IntN(3), len(lines))
	for {
		isOnce := strings.Count(text, prefixed("", lines[from:to])) == 1
		isWhole := from == 0 && to == len(lines)
		if isOnce || isWhole {
			return from, to
		}
		from = max(from-1, 0)
		to = min(to+1, len(lines))
	}
}

// prefixed returns lines with a mark before each.
func prefixed(mark string, lines []pen) (text string) {
	for _, l := range lines {
		text += mark + l.text + "\n"
	}
	return text
}

// agent makes one edit of a file in the next turn of an agent. Some calls fail before.
func (w *workday) agent(n int) {
	w.edits++
	who := []string{"claude", "codex", "omp"}[w.IntN(3)]
	if w.IntN(20) == 0 {
		w.call(who, "write", "a call that fails\n", n, 0, 0, nil, true)
	}
	lines := w.files[n]
	if len(lines) == 0 || w.IntN(40) == 0 {
		list := w.newLines(20+w.IntN(60), nil)
		by := w.call(who, "write", prefixed("", list), n, 0, 0, nil, false)
		w.take(n, by, 0, len(lines), list)
		return
	}
	from, to := w.place(n)
	if w.IntN(2) == 0 { // the first line stays
		from = min(from+1, to)
	}
	list := w.newLines(1+w.IntN(6), lines[max(from-1, 0):to])
	if len(list) == 0 {
		list = []pen{{text: fmt.Sprintf("\tonly%d()", w.edits)}}
	}
	by := w.call(who, "edit", prefixed("", list), n, from, to, list, false)
	w.take(n, by, from, to, list)
}

// take puts the lines of an edit into a file, in place of those from from to to, and notes their author.
func (w *workday) take(n int, by string, from, to int, list []pen) {
	for i := range list {
		list[i].by = by
		w.written[list[i].text] = true
	}
	w.files[n] = slices.Concat(w.files[n][:from], list, w.files[n][to:])
}

// call writes a turn of an agent with one call, by which the lines from from to to of a file are replaced, and returns
// the name of its entry.
func (w *workday) call(who, verb, text string, n, from, to int, list []pen, fails bool) (by string) {
	w.now = w.now.Add(time.Minute)
	w.turns++
	defer func() { by = who + " " + by + " " + w.prompt() }()
	all := w.journals[who]
	if len(all) == 0 || len(all[len(all)-1].lines) > 4*perSession {
		all = append(all, &journal{})
		w.journals[who] = all
	}
	j := all[len(all)-1]
	lines := w.files[n]
	// The replaced lines with those around them that make the place clear.
	before := from
	after := to
	if verb == "edit" {
		for before == after || strings.Count(prefixed("", lines), prefixed("", lines[before:after])) != 1 {
			before = max(before-1, 0)
			after = min(after+1, len(lines))
		}
	}
	old := prefixed("", lines[before:after])
	became := prefixed("", lines[before:from]) + text + prefixed("", lines[to:after])
	switch who {
	case "claude":
		return w.claude(j, verb, old, became, text, n, fails)
	case "codex":
		patch := "*** Add File: " + filepath.Base(w.path(n)) + "\n" + prefixed("+", made(text))
		if verb == "edit" {
			patch = "*** Update File: " + filepath.Base(w.path(n)) + "\n@@\n" + prefixed(" ", lines[before:from]) +
				prefixed("-", lines[from:to]) + prefixed("+", list) + prefixed(" ", lines[to:after])
		}
		return w.codex(j, "*** Begin Patch\n"+patch+"*** End Patch\n", fails)
	}
	arguments := map[string]any{"path": filepath.Base(w.path(n)), "content": text}
	diff := ""
	if verb == "edit" {
		arguments = map[string]any{"path": filepath.Base(w.path(n)), "edits": []any{map[string]any{"old_text": old, "new_text": became}}}
		if w.IntN(2) == 0 {
			operation := fmt.Sprintf("PUT >%d:", from)
			if from < to {
				operation = fmt.Sprintf("PUT %d.=%d:", from+1, to)
			}
			arguments = map[string]any{"input": fmt.Sprintf("[%s#1A2B]\n%s\n%s", filepath.Base(w.path(n)), operation, prefixed("+", list))}
			diff = w.diff(n, from, to, list)
		}
	}
	return w.omp(j, verb, arguments, diff, fails)
}

// made returns a text as lines.
func made(text string) (list []pen) {
	for line := range strings.Lines(text) {
		list = append(list, pen{text: strings.TrimSuffix(line, "\n")})
	}
	return list
}

// prompt is what the person asked for in this turn.
func (w *workday) prompt() string { return fmt.Sprint("Change no. ", w.turns) }

// stamp returns the time of a record of this turn, so many milliseconds after its beginning.
func (w *workday) stamp(ms int) string {
	return w.now.Add(time.Duration(ms) * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
}

// claude writes a turn of Claude Code, and returns the id of its answer, which has the call.
func (w *workday) claude(j *journal, verb, old, became, text string, n int, fails bool) string {
	if j.name == "" {
		j.name = fmt.Sprintf(".claude/projects/-work/5e550000-0000-4000-8000-%012d.jsonl", w.edits)
	}
	id := func(of int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", of) }
	first := len(j.lines) + 1
	record := func(i int, typ string, message map[string]any) {
		r := map[string]any{
			"parentUuid":  nil,
			"isSidechain": false,
			"cwd":         filepath.Join(w.home, "work"),
			"version":     "2.1.330",
			"type":        typ,
			"uuid":        id(first + i),
			"sessionId":   strings.TrimSuffix(filepath.Base(j.name), ".jsonl"),
			"timestamp":   w.stamp(i),
			"message":     message,
		}
		if first+i > 1 {
			r["parentUuid"] = id(first + i - 1)
		}
		j.add(r)
	}
	tool := "Write"
	input := map[string]any{"file_path": w.path(n), "content": text}
	if verb == "edit" {
		tool = "Edit"
		input = map[string]any{"file_path": w.path(n), "old_string": old, "new_string": became}
		if w.IntN(3) == 0 {
			tool = "MultiEdit"
			input = map[string]any{"file_path": w.path(n), "edits": []any{map[string]any{"old_string": old, "new_string": became}}}
		}
	}
	use := fmt.Sprint("tu", first)
	record(0, "user", map[string]any{"role": "user", "content": w.prompt()})
	record(1, "assistant", map[string]any{
		"id":          use,
		"type":        "message",
		"role":        "assistant",
		"model":       "claude-sonnet-5",
		"stop_reason": "tool_use",
		"content":     []any{map[string]any{"type": "tool_use", "id": use, "name": tool, "input": input}},
	})
	record(2, "user", map[string]any{
		"role": "user",
		"content": []any{
			map[string]any{"type": "tool_result", "tool_use_id": use, "content": "done", "is_error": fails}},
	})
	return id(first + 1)
}

// codex writes a turn of Codex, and returns the name of the entry of its call.
func (w *workday) codex(j *journal, patch string, fails bool) string {
	line := func(ms int, typ string, payload map[string]any) {
		j.add(map[string]any{"timestamp": w.stamp(ms), "type": typ, "payload": payload})
	}
	if j.name == "" {
		id := fmt.Sprintf("0198a000-0000-7000-8000-%012d", w.edits)
		j.name = fmt.Sprintf(".codex/sessions/2026/03/02/rollout-%s-%s.jsonl", w.now.Format("2006-01-02T15-04-05"), id)
		line(0, "session_meta", map[string]any{
			"id":          id,
			"timestamp":   w.stamp(0),
			"cwd":         filepath.Join(w.home, "work"),
			"originator":  "codex-tui",
			"cli_version": "0.146.0",
			"source":      "cli",
		})
	}
	call := fmt.Sprint("call", len(j.lines))
	output := "Success"
	prompt := map[string]any{"type": "input_text", "text": w.prompt()}
	line(1, "response_item", map[string]any{
		"type":    "message",
		"role":    "user",
		"content": []any{prompt},
	})
	line(1, "event_msg", map[string]any{"type": "user_message", "message": w.prompt()})
	if fails {
		output = []string{
			`{"output":"No such file","metadata":{"exit_code":1,"duration_seconds":0.1}}`, "Exit code: 1\nOutput:\nNo such file",
			"apply_patch verification failed: Failed to find expected lines",
		}[w.IntN(3)]
	}
	kind := "custom_tool_call"
	if w.IntN(3) == 0 { // as an older client has it
		kind = "function_call"
		arguments, _ := json.Marshal(map[string]any{"command": []string{"apply_patch", patch}})
		line(2, "response_item", map[string]any{
			"type":      kind,
			"call_id":   call,
			"name":      "shell",
			"arguments": string(arguments),
		})
	} else {
		line(2, "response_item", map[string]any{
			"type":    kind,
			"call_id": call,
			"name":    "apply_patch",
			"input":   patch,
			"status":  "completed",
		})
	}
	entry := fmt.Sprint("l", len(j.lines))
	line(3, "response_item", map[string]any{"type": kind + "_output", "call_id": call, "output": output})
	return entry
}

// diff returns the diff that omp has in the result of an edit.
func (w *workday) diff(n, from, to int, list []pen) string {
	lines := w.files[n]
	out := []string{" 1|..."}
	added := strings.Split(strings.TrimSuffix(prefixed(fmt.Sprintf("+%d|", to+1), list), "\n"), "\n")
	for i := max(from-4, 0); i < min(to+4, len(lines)); i++ {
		if i == to {
			out = append(out, added...)
		}
		mark := " "
		if i >= from && i < to {
			mark = "-"
		}
		out = append(out, fmt.Sprintf("%s%d|%s", mark, i+1, lines[i].text))
	}
	if to == len(lines) {
		out = append(out, added...)
	}
	return strings.Join(out, "\n")
}

// omp writes a turn of omp, and returns the id of its answer, which has the call. diff is the one in the result.
func (w *workday) omp(j *journal, verb string, arguments map[string]any, diff string, fails bool) string {
	if j.name == "" {
		id := fmt.Sprint("o", w.edits)
		j.name = fmt.Sprintf(".omp/agent/sessions/-work/%s_%s.jsonl", w.now.Format("2006-01-02T15-04-05-000Z"), id)
		j.add(map[string]any{"type": "session", "version": 3, "id": id, "timestamp": w.stamp(0), "cwd": filepath.Join(w.home, "work")})
	}
	entry := func(ms int, message map[string]any) string {
		e := map[string]any{"type": "message", "id": fmt.Sprintf("%08d", len(j.lines)), "parentId": nil, "timestamp": w.stamp(ms), "message": message}
		if len(j.lines) > 1 {
			e["parentId"] = fmt.Sprintf("%08d", len(j.lines)-1)
		}
		j.add(e)
		return e["id"].(string)
	}
	call := fmt.Sprint("call", len(j.lines))
	entry(0, map[string]any{"role": "user", "content": w.prompt()})
	id := entry(1, map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "toolCall", "id": call, "name": verb, "arguments": arguments}}})
	entry(2, map[string]any{
		"role":       "toolResult",
		"toolCallId": call,
		"toolName":   verb,
		"isError":    fails,
		"details":    map[string]any{"diff": diff},
		"content":    []any{map[string]any{"type": "text", "text": "ok"}},
	})
	return id
}
