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

// Convert returns what a converter makes of a file: whole, and what it had said after each line.
func Convert(t testing.TB, c *agents.Builder, file string) (whole string, states []string) {
	for range 4 {
		whole, states = convert(t, c, file)
		c = c.Restart()
		if c == nil {
			break
		}
	}
	return whole, states
}

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

// Outline returns a line for each entry: its id, parent, kind and text. It leaves out problems.
func Outline(t testing.TB, lines string) (outline []string) {
	for line := range strings.Lines(lines) {
		if line[0] == '"' {
			continue // it says which line of the file is none
		}
		var e struct {
			Type, ID, ParentID, Summary, Title, FirstKeptEntryID string
			Content                                              any
			ExcludeFromContext                                   bool
			Data                                                 struct{ TargetID string }
			Model, ThinkingLevel                                 string
			Message                                              struct {
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
			Origin struct {
				Line  int
				Lines []int
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		m := &e.Message
		words := []string{e.ID + " < " + e.ParentID, e.Type}
		add := func(format string, args ...any) {
			words = append(words, fmt.Sprintf(format, args...))
		}
		if e.Type == "session" {
			words = words[1:]
			add("%s", e.ID)
		}
		for _, text := range []string{e.Title, m.Role, m.ToolName, says(e.Content), says(m.Content), e.Summary, e.Data.TargetID, e.Model, e.ThinkingLevel} {
			if text != "" {
				add("%s", text)
			}
		}
		for _, file := range m.Files {
			add("%s %q", file.Path, file.Content)
		}
		if e.ExcludeFromContext {
			add("not sent")
		}
		if e.FirstKeptEntryID != "" {
			add("kept %s", e.FirstKeptEntryID)
		}
		if m.IsError {
			add("failed")
		}
		if m.Details.Changes != nil {
			details, _ := json.Marshal(m.Details)
			add("%s", details)
		}
		if m.Role == "assistant" {
			add("%s", m.StopReason)
		}
		if u := m.Usage; u != nil {
			require.Equal(t, u.TotalTokens, u.Input+u.Output+u.CacheRead+u.CacheWrite)
			add("%d+%d", u.TotalTokens-u.Output, u.Output)
		}
		if e.Type != "session" {
			require.NotZero(t, e.Origin.Line)
			if len(e.Origin.Lines) > 0 {
				add("%d", e.Origin.Lines)
			} else {
				add("[%d]", e.Origin.Line)
			}
		}
		outline = append(outline, strings.Join(words, " "))
	}
	return outline
}

// says returns the texts of content, with the names of what else is in it.
func says(content any) string {
	switch c := content.(type) {
	case string:
		return fmt.Sprintf("%q", c)
	case []any:
		var all []string
		for _, b := range c {
			block, _ := b.(map[string]any)
			switch block["type"] {
			case "text":
				all = append(all, fmt.Sprintf("%q", block["text"]))
			case "thinking":
				all = append(all, fmt.Sprintf("(%v)", block["thinking"]))
			case "toolCall":
				arguments, _ := json.Marshal(block["arguments"])
				all = append(all, fmt.Sprintf("%v:%v%s", block["id"], block["name"], arguments))
			case "image":
				all = append(all, fmt.Sprintf("image %v %v", block["mimeType"], block["data"]))
			default:
				all = append(all, fmt.Sprint(block["type"]))
			}
		}
		return strings.Join(all, " ")
	}
	return ""
}

// Entries fails unless a text is whole lines of JSON, with texts where readers of a session take texts for granted.
func Entries(t testing.TB, text string) {
	for line := range strings.Lines(text) {
		require.True(t, strings.HasSuffix(line, "\n") && json.Valid([]byte(line)), "%q", line)
		var texts struct{ Type, ID, ParentID, CWD, Title, CLIVersion, GitBranch, Summary string }
		require.True(t, line[0] != '{' || json.Unmarshal([]byte(line), &texts) == nil, "%q", line)
	}
}
