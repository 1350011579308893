package view

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// obeyed are characters that a terminal, an editor or a browser obeys: controls, C1 controls, signs of direction, separators.
const obeyed = "\a\b\x1b[31m\x7f\u0085\u009b\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029"

// references are the same in Markdown, in each spelling that a renderer knows.
const references = "&#7; &#27; &#x1B; &#X9b; &#155; &#x202e; &#8238; &lrm; &rlm; &#x2066; &#127;"

// structure are the members that are no text: another value is another kind of line.
var structure = []string{"type", "role", "timestamp", "version", "stopReason"}

// poisoned returns a value with words put into each text and each key.
func poisoned(value any, with func(string) string) any {
	switch v := value.(type) {
	case string:
		return with(v)
	case []any:
		for i := range v {
			v[i] = poisoned(v[i], with)
		}
	case map[string]any:
		for key, member := range v {
			if !slices.Contains(structure, key) {
				v[key] = poisoned(member, with)
			}
		}
		arguments, isCall := v["arguments"].(map[string]any)
		if isCall {
			arguments[with("key")] = "value"
		}
	}
	return value
}

// poisonedLines returns lines of JSON, poisoned. It leaves out lines that are no JSON.
func poisonedLines(t *testing.T, text string, with func(string) string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		var value any
		err := json.Unmarshal([]byte(line), &value)
		if err != nil {
			continue
		}
		out, err := json.Marshal(poisoned(value, with))
		require.NoError(t, err)
		lines.Write(append(out, '\n'))
	}
	return lines.String()
}

// requireNothingRaw requires that a page, also as a browser resolves it, has no character that is obeyed.
func requireNothingRaw(t *testing.T, page, about string) {
	t.Helper()
	for _, text := range []string{page, html.UnescapeString(page)} {
		at := strings.IndexFunc(text, func(r rune) bool {
			return r != '\n' && r != '\t' && (rawjson.IsControl(r) || markdown.Obeyed(r))
		})
		if at >= 0 {
			t.Fatalf("%s: %q", about, text[max(0, at-100):min(len(text), at+20)])
		}
	}
}

// TestNothingStandsRaw: whatever is in a field of a session or of a site, no page has a character that is obeyed: each text and key
// of the sample sessions, of sessions with every kind of block, of a page's header and of a site.
func TestNothingStandsRaw(t *testing.T) {
	var stores []string
	for _, file := range sessiontest.StoreFiles(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		stores = append(stores, string(text))
	}
	stores = append(stores, sessiontest.Header+treeLines, sessiontest.Header+everyKind)
	poisons := map[string]func(string) string{
		"before":     func(s string) string { return obeyed + s },
		"after":      func(s string) string { return s + obeyed },
		"references": func(s string) string { return s + references + "\n\n`" + references + "`\n\n    " + references },
		"markdown": func(s string) string {
			return s + " [" + obeyed + "](https://a/" + obeyed + " \"" + obeyed + "\") ![" + obeyed + references + "](blobs/" + hash + ") <https://b/" + obeyed +
				">\n\n```" + obeyed + "\n" + obeyed + "\n```\n\n| " + obeyed + " | " + references + " |\n|-|-|\n| " + references + " | " + obeyed + " |\n"
		},
	}
	pages := 0
	for name, with := range poisons {
		for _, store := range stores {
			lines := poisonedLines(t, store, with)
			s, err := sessiontest.Acquire(t, newTestSession(t, lines).session)
			if err != nil {
				continue // it is no session
			}
			subject := Subject{
				Session: s,
				End:     sessiontest.Leaf(t, s),
				Blobs:   testBlobs,
				Index:   "index.html",
				Agent:   with("agent"),
				Model:   with("model"),
				Tokens:  with("tokens"),
				Cost:    with("cost"),
			}
			var out bytes.Buffer
			require.NoError(t, Page(context.Background(), &out, subject))
			requireNothingRaw(t, out.String(), name)
			pages++
		}
		var out bytes.Buffer
		linked := Linked{
			File:    with("a"),
			Title:   with("b"),
			Project: with("c"),
			Agent:   with("d"),
			Began:   time.Unix(1e9, 0),
			Cost:    with("e"),
		}
		require.NoError(t, Index(&out, Site{Sessions: []Linked{linked}, Total: with("f")}))
		requireNothingRaw(t, out.String(), name)
	}
	require.Greater(t, pages, len(poisons)*2)
	page := pageOf(t, sessiontest.Entry("e0", "")+sessiontest.MessageLine(1, `{"role":"user","content":"a\u202eb\u001b"}`))
	for _, said := range []string{obeyed, "`" + obeyed + "`", "    " + obeyed, "<https://b/" + obeyed + ">", "a&amp;" + obeyed, strings.Repeat("[", maxBrackets+1) + obeyed} {
		requireNothingRaw(t, bodyOf(t, said), said)
	}
	require.Equal(t, 2, strings.Count(page, "a{U+202E}b␛"), "the list of entries shows them as the text does")
}

// everyKind is a session with each kind of entry and of block.
var everyKind = sessiontest.MessageLine(0, `{"role":"user","content":[{"type":"text","text":"t"},{"type":"image","data":"blob:sha256:`+hash+`","mimeType":"image/png"},`+
	`{"type":"image","source":{"type":"base64","media_type":"m","data":"d"}},{"type":"fallback","to":{"model":"f"}},{"type":"odd","a":{"b":["c"]}}]}`) +
	sessiontest.MessageLine(1, `{"role":"assistant","provider":"p","model":"m","errorMessage":"bad","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"so"},`+
		`{"type":"toolCall","id":"c1","name":"bash","intent":"why","arguments":{"command":"go","cwd":"/d"}},`+
		`{"type":"toolCall","id":"c2","name":"edit","arguments":{"file_path":"a.go","old_string":"a","new_string":"b"}},`+
		`{"type":"toolCall","id":"c3","name":"other","arguments":{"a":[{"k":"v"},{"k":"w\nx"}],"b":{"c":"d"}}}]}`) +
	sessiontest.MessageLine(2, `{"role":"toolResult","toolCallId":"c1","toolName":"bash","isError":true,"content":[{"type":"text","text":"{\"output\":\"o\",\"metadata\":{\"exit_code\":1}}"}]}`) +
	sessiontest.MessageLine(3, `{"role":"toolResult","toolCallId":"c3","toolName":"other","content":"out"}`) +
	sessiontest.MessageLine(4, `{"role":"bashExecution","command":"ls","output":"o","exitCode":1}`) +
	sessiontest.MessageLine(5, `{"role":"odd","content":"x","customType":"c"}`) +
	sessiontest.MessageLine(6, `{"role":"custom","content":"x","customType":"c","display":true}`) +
	`{"type":"compaction","id":"k","parentId":"e6","timestamp":"2026-01-05T09:00:20.000Z","summary":"s","firstKeptEntryId":"e3","tokensBefore":5}` + "\n" +
	`{"type":"branch_summary","id":"l","parentId":"k","timestamp":"2026-01-05T09:00:21.000Z","summary":"s","fromId":"e2"}` + "\n" +
	`{"type":"model_change","id":"n","parentId":"l","timestamp":"2026-01-05T09:00:22.000Z","provider":"p","model":"m","modelId":"i"}` + "\n" +
	`{"type":"thinking_level_change","id":"o","parentId":"n","timestamp":"2026-01-05T09:00:23.000Z","thinkingLevel":"high"}` + "\n" +
	`{"type":"custom_message","id":"q","parentId":"o","timestamp":"2026-01-05T09:00:24.000Z","customType":"c","content":"x","display":true}` + "\n" +
	`{"type":"session_info","id":"r","parentId":"q","timestamp":"2026-01-05T09:00:25.000Z","name":"title"}` + "\n" +
	`{"type":"title_change","id":"s","parentId":"r","timestamp":"2026-01-05T09:00:26.000Z","title":"title"}` + "\n" +
	`{"type":"unheard","id":"u","parentId":"s","timestamp":"2026-01-05T09:00:27.000Z","text":"t"}` + "\n" +
	`{"type":"message","id":"v","parentId":"e0","timestamp":"2026-01-05T09:00:28.000Z","message":{"role":"user","content":"another branch"}}` + "\n" +
	sessiontest.LabelAt(29, "w", "u", "v", "branch") + sessiontest.LabelAt(30, "x", "w", "e1", "label")
