package testdata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// slotBytes is what the client reserves for the title, newline included.
const slotBytes = 256

// isoTime is how JavaScript writes a time.
const isoTime = "2006-01-02T15:04:05.000Z"

var entryID = regexp.MustCompile(`^[0-9a-f]{8}$`)

type header struct {
	Type, ID, Timestamp, Cwd, Title, ParentSession string
	Version                                        int
}

type entry struct {
	Type, ID, Timestamp, TargetID, FirstKeptEntryID, FromID, Label string
	FirstKeptEntryIndex                                            int
	ParentID                                                       *string
	Message                                                        struct {
		Role, ToolCallID, ToolName string
		Content                    any // a list of blocks, or text
		Usage                      *usage
		Details                    struct {
			Results []taskResult
		}
	}
}

type taskResult struct {
	ID, Output, OutputPath string
	Usage                  *usage
}

type usage struct {
	Input, Output, CacheRead, CacheWrite, TotalTokens int
	Cost                                              struct{ Input, Output, CacheRead, CacheWrite, Total float64 }
}

func (u *usage) add(v *usage) {
	if v == nil {
		return
	}
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.TotalTokens += v.TotalTokens
	u.Cost.Input += v.Cost.Input
	u.Cost.Output += v.Cost.Output
	u.Cost.CacheRead += v.Cost.CacheRead
	u.Cost.CacheWrite += v.Cost.CacheWrite
	u.Cost.Total += v.Cost.Total
}

// A session is a file whose lines have been checked one by one.
type session struct {
	text    string
	slot    bool
	header  header
	entries []*entry
	byID    map[string]*entry
	lines   map[string]string // id → line
	calls   map[string]string // open tool calls, id → tool
	last    string            // time of the last line
	report  func(line int, format string, args ...any)
}

// parseSession reads a session as the client writes it: no damage is allowed.
func parseSession(data []byte, report func(int, string, ...any)) *session {
	s := &session{text: string(data), report: report,
		byID: map[string]*entry{}, lines: map[string]string{}, calls: map[string]string{}}
	body, whole := strings.CutSuffix(s.text, "\n")
	if !whole {
		report(0, "the last line has no newline")
	}
	for i, line := range strings.Split(body, "\n") {
		if got, err := stringify([]byte(line)); err != nil || string(got) != line {
			report(i+1, "is not as JSON.stringify writes it: %v", err)
			continue
		}
		switch {
		case i == 0 && strings.HasPrefix(line, `{"type":"title"`):
			s.slot = true
			if len(line)+1 != slotBytes {
				report(1, "the title slot has %d bytes", len(line)+1)
			}
		case s.header.Type == "":
			s.readHeader(i+1, line)
		default:
			s.readEntry(i+1, line)
		}
	}
	for id, tool := range s.calls {
		report(0, "call %s of %s has no result", id, tool)
	}
	return s
}

func (s *session) readHeader(n int, line string) {
	if err := json.Unmarshal([]byte(line), &s.header); err != nil || s.header.Type != "session" {
		s.report(n, "is no header: %v", err)
		s.header.Type = "session"
	}
	s.time(n, s.header.Timestamp)
	if s.header.ParentSession != "" {
		s.last = "" // a fork is younger than the entries that it begins with
	}
	if v := s.header.Version; v == 3 {
		at, _ := time.Parse(isoTime, s.header.Timestamp)
		hex := fmt.Sprintf("%012x", at.UnixMilli())
		if want := hex[:8] + "-" + hex[8:] + "-7"; !strings.HasPrefix(s.header.ID, want) {
			s.report(n, "id %s is no UUIDv7 of the header's time", s.header.ID)
		}
	} else if v != 0 {
		s.report(n, "version is %d", v)
	}
}

func (s *session) readEntry(n int, line string) {
	e := new(entry)
	if err := json.Unmarshal([]byte(line), e); err != nil || e.Type == "" {
		s.report(n, "is no entry: %v", err)
		return
	}
	s.time(n, e.Timestamp)
	if s.header.Version == 3 {
		s.place(n, e)
		s.lines[e.ID] = line
		s.byID[e.ID] = e
	} else if e.ID != "" || e.ParentID != nil {
		s.report(n, "version 1 has no ids")
	}
	s.entries = append(s.entries, e)
	s.tools(n, e)
	if u := e.Message.Usage; u != nil {
		s.usage(n, u)
	}
	if e.Message.Role == "assistant" && e.Message.Usage == nil {
		s.report(n, "an assistant message without usage")
	}
}

// place checks the ids of an entry: its own and those that it names.
func (s *session) place(n int, e *entry) {
	if !entryID.MatchString(e.ID) || s.byID[e.ID] != nil {
		s.report(n, "id %q is no new one", e.ID)
	}
	if e.ParentID == nil {
		if len(s.entries) > 0 {
			s.report(n, "a second root")
		}
	} else if s.byID[*e.ParentID] == nil {
		s.report(n, "parent %s is missing", *e.ParentID)
	}
	for _, id := range []string{e.TargetID, e.FromID, e.FirstKeptEntryID} {
		if id != "" && s.byID[id] == nil {
			s.report(n, "entry %s is missing", id)
		}
	}
	if id := e.FirstKeptEntryID; id != "" && !s.above(e, id) {
		s.report(n, "kept entry %s is not on the path", id)
	}
}

// above tells whether an entry is on the path from the root to e.
func (s *session) above(e *entry, id string) bool {
	for e.ParentID != nil {
		if *e.ParentID == id {
			return true
		}
		if e = s.byID[*e.ParentID]; e == nil {
			return false
		}
	}
	return false
}

// tools matches tool calls and their results.
func (s *session) tools(n int, e *entry) {
	if m := e.Message; m.Role == "toolResult" {
		if s.calls[m.ToolCallID] != m.ToolName {
			s.report(n, "result of %s %s without its call", m.ToolName, m.ToolCallID)
		}
		delete(s.calls, m.ToolCallID)
		return
	}
	blocks, _ := e.Message.Content.([]any)
	for _, b := range blocks {
		if b, ok := b.(map[string]any); ok && b["type"] == "toolCall" {
			s.calls[fmt.Sprint(b["id"])] = fmt.Sprint(b["name"])
		}
	}
}

func (s *session) usage(n int, u *usage) {
	if u.TotalTokens == 0 || u.Input+u.Output+u.CacheRead+u.CacheWrite != u.TotalTokens {
		s.report(n, "tokens do not add up")
	}
	if u.Cost.Input+u.Cost.Output+u.Cost.CacheRead+u.Cost.CacheWrite != u.Cost.Total {
		s.report(n, "costs do not add up")
	}
}

// time checks that lines follow each other in time, within 2026.
func (s *session) time(n int, stamp string) {
	if at, err := time.Parse(isoTime, stamp); err != nil || at.Year() != 2026 || at.Format(isoTime) != stamp {
		s.report(n, "time %q is not the client's", stamp)
	}
	if stamp < s.last {
		s.report(n, "time goes back to %s", stamp)
	}
	s.last = stamp
}

// stringify writes a JSON value again as JSON.stringify would: keys in their
// order, no blanks, shortest numbers and no needless escapes.
func stringify(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	var out bytes.Buffer
	if err := writeValue(dec, &out); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("more than one value")
	}
	return out.Bytes(), nil
}

func writeValue(dec *json.Decoder, out *bytes.Buffer) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return writeScalar(token, out)
	}
	out.WriteRune(rune(open))
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			if err := writeScalar(key, out); err != nil {
				return err
			}
			out.WriteByte(':')
		}
		if err := writeValue(dec, out); err != nil {
			return err
		}
	}
	end, err := dec.Token()
	fmt.Fprint(out, end)
	return err
}

func writeScalar(v any, out *bytes.Buffer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	out.Truncate(out.Len() - 1) // the encoder's newline
	return err
}
