package agentstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
)

// Convert returns the session that a converter makes of a file: whole, and as it is after each record. The converter may
// restart.
func Convert(t testing.TB, c *agents.Builder, file string) (whole string, states []string) {
	for range maxReadings {
		whole, states = convert(t, c, file)
		c = c.Restart()
		if c == nil {
			break
		}
	}
	return whole, states
}

// convert is Convert for one reading of the file. It clears each record behind it, of which the converter must keep
// nothing.
func convert(t testing.TB, c *agents.Builder, file string) (whole string, states []string) {
	var out []byte
	add := func(u *jsonl.Unit) error {
		if u.Kind != jsonl.ObjectUnit {
			return nil
		}
		text := u.Text
		before := len(out)
		if len(u.Members) > 0 {
			out = c.AddUnit(out, u)
		} else {
			text = bytes.Clone(agents.OneLine(u))
			out = c.Add(out, text, u.Line)
		}
		clear(text) // a converter keeps no part of a value
		require.GreaterOrEqual(t, len(out), before)
		state := c.Tail(bytes.Clone(out))
		states = append(states, string(state))
		return nil
	}
	records := jsonl.Records{Inner: c.InnerKey, RawControls: c.RawControls}
	size := int64(len(file))
	_, err := records.Load(context.Background(), strings.NewReader(file), jsonl.Position{}, size, add)
	require.NoError(t, err)
	return string(c.Tail(out)), states
}

// outlinedEntry has the members of an entry that its line in an Outline shows.
type outlinedEntry struct {
	Type, ID, ParentID, Summary, Title, FirstKeptEntryID string
	Content                                              any
	ExcludeFromContext                                   bool
	Data                                                 struct{ TargetID string }
	Model, ThinkingLevel                                 string
	Message                                              outlinedMessage
	Origin                                               struct {
		Line  int
		Lines []int
	}
}

// outlinedMessage is the message of an outlinedEntry.
type outlinedMessage struct {
	Role, ToolName, StopReason string
	Content                    any
	Files                      []struct{ Path, Content string }
	IsError                    bool
	Details                    struct {
		Changes any `json:"changes"`
		Success any `json:"success"`
	}
	Usage *struct{ Input, Output, CacheRead, CacheWrite, TotalTokens int }
}

// Outline returns a line for each entry: its id, parent, kind and text, the other facts about it, and the lines of its
// records. It leaves out problems.
func Outline(t testing.TB, lines string) (outline []string) {
	for line := range strings.Lines(lines) {
		if line[0] == '"' {
			continue // it says which line of the file is none
		}
		var e outlinedEntry
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		outline = append(outline, e.outline(t))
	}
	return outline
}

// outline returns the line of an entry.
func (e *outlinedEntry) outline(t testing.TB) string {
	isHeader := e.Type == "session"
	words := []string{e.ID + " < " + e.ParentID, e.Type}
	if isHeader {
		words = []string{e.Type, e.ID}
	}
	m := &e.Message
	texts := []string{
		e.Title, m.Role, m.ToolName, says(e.Content), says(m.Content), e.Summary, e.Data.TargetID, e.Model, e.ThinkingLevel,
	}
	for _, text := range texts {
		if text != "" {
			words = append(words, text)
		}
	}
	for _, file := range m.Files {
		words = append(words, fmt.Sprintf("%s %q", file.Path, file.Content))
	}
	if e.ExcludeFromContext {
		words = append(words, "not sent")
	}
	if e.FirstKeptEntryID != "" {
		words = append(words, "kept "+e.FirstKeptEntryID)
	}
	words = append(words, m.facts(t)...)
	if isHeader {
		return strings.Join(words, " ")
	}
	require.NotZero(t, e.Origin.Line)
	records := e.Origin.Lines
	if len(records) == 0 {
		records = []int{e.Origin.Line}
	}
	words = append(words, fmt.Sprint(records))
	return strings.Join(words, " ")
}

// facts returns the words about a result or an answer. It fails if the tokens of an answer are not the sum of its parts.
func (m *outlinedMessage) facts(t testing.TB) (words []string) {
	if m.IsError {
		words = append(words, "failed")
	}
	if m.Details.Changes != nil {
		details, err := json.Marshal(m.Details)
		require.NoError(t, err)
		words = append(words, string(details))
	}
	if m.Role == "assistant" {
		words = append(words, m.StopReason)
	}
	u := m.Usage
	if u != nil {
		sent := u.Input + u.CacheRead + u.CacheWrite
		require.Equal(t, u.TotalTokens, sent+u.Output)
		words = append(words, fmt.Sprintf("%d+%d", sent, u.Output))
	}
	return words
}

// says returns the texts of content, with calls, images, and the names of other blocks among them. It is "" for no content.
func says(content any) string {
	text, isText := content.(string)
	if isText {
		return fmt.Sprintf("%q", text)
	}
	blocks, _ := content.([]any)
	var all []string
	for _, v := range blocks {
		block, _ := v.(map[string]any)
		all = append(all, saysOfBlock(block))
	}
	return strings.Join(all, " ")
}

// saysOfBlock is says for a block.
func saysOfBlock(block map[string]any) string {
	switch block["type"] {
	case "text":
		return fmt.Sprintf("%q", block["text"])
	case "thinking":
		return fmt.Sprintf("(%v)", block["thinking"])
	case "toolCall":
		arguments, _ := json.Marshal(block["arguments"])
		return fmt.Sprintf("%v:%v%s", block["id"], block["name"], arguments)
	case "image":
		return fmt.Sprintf("image %v %v", block["mimeType"], block["data"])
	}
	return fmt.Sprint(block["type"])
}

// Entries fails unless a text is whole lines of JSON, with texts where readers of a session take texts for granted.
func Entries(t testing.TB, text string) {
	for line := range strings.Lines(text) {
		require.True(t, strings.HasSuffix(line, "\n"), "%q", line)
		require.True(t, json.Valid([]byte(line)), "%q", line)
		if line[0] != '{' {
			continue
		}
		var texts struct{ Type, ID, ParentID, CWD, Title, CLIVersion, GitBranch, Summary string }
		err := json.Unmarshal([]byte(line), &texts)
		require.NoError(t, err, "%q", line)
	}
}
