package view

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

const (
	asks      = `{"role":"assistant","provider":"p","model":"m","content":[`
	assistant = "\n## Assistant · 2026-01-05 09:00:00 · e0 · `p/m`\n"
)

// TestEntriesInTranscripts: each role and each kind of block in both spellings, and entries that are no messages in both
// dialects. A turn has a heading, with its answers and results below.
func TestEntriesInTranscripts(t *testing.T) {
	messages := func(given string) (lines []string) {
		for i, message := range strings.Split(given, "\n") {
			lines = append(lines, sessiontest.MessageLine(i, message))
		}
		return lines
	}
	for page, linesOf := range map[string]func(given string) []string{
		"messages": messages, "turns": messages, "entries": func(members string) []string {
			return []string{`{"id":"a (b)%","parentId":null,"timestamp":"2026-01-05T09:00:01.000Z",` + members + "}\n"}
		},
	} {
		sessiontest.Page(t, "testdata/"+page+".txt", func(t *testing.T, _, given, want string) {
			require.Equal(t, want, transcriptBody(t, linesOf(given)...), given)
		})
	}
}

// TestTranscriptHeads: the title and the line about the session stand above all.
func TestTranscriptHeads(t *testing.T) {
	sessiontest.Page(t, "testdata/heads.txt", func(t *testing.T, name, session, want string) {
		snap := snapshotOf(t, session+"\n")
		checkTranscript(t, snap, sessiontest.Leaf(t, snap))
		text, _ := transcriptOf(t, snap, sessiontest.Leaf(t, snap), testLinks)
		head, _, _ := strings.Cut(string(text), "\n\n## ")
		require.Equal(t, strings.TrimSuffix(want, "\n"), strings.TrimSuffix(head, "\n"), name)
	})
}

// TestLongOutputIsCut: head and tail are shown, with a link to the entry between them.
func TestLongOutputIsCut(t *testing.T) {
	sessiontest.NotUnderRace(t)
	output := strings.Repeat(`a line of output\n`, 500_000/17)
	body := transcriptBody(t, sessiontest.MessageLine(0, `{"role":"toolResult","toolName":"bash","content":[{"type":"text","text":"first\n`+output+`last"}]}`))
	require.Less(t, len(body), 8<<10)
	require.Contains(t, body, "```\nfirst\na line of output\n")
	require.Contains(t, body, "a line of output\n```\n\n*… 523 KB left out:* [the whole entry](entries/e0.json)\n\n```\na line")
	require.True(t, strings.HasSuffix(body, "a line of output\nlast\n```\n"))
	// Prose is not.
	prose := strings.Repeat(`some words. `, 80_000)
	require.Equal(t, "\n## User · 2026-01-05 09:00:00 · e0\n\n"+strings.TrimSpace(prose)+"\n",
		transcriptBody(t, sessiontest.MessageLine(0, `{"role":"user","content":"`+prose+`"}`)))
	// Unless it is absurd.
	body = transcriptBody(t, sessiontest.MessageLine(0, `{"role":"user","content":"`+prose+prose+`"}`))
	require.Less(t, len(body), maxProse+1000)
	require.True(t, strings.HasSuffix(body, "\n\n*Not all of it is shown:* [the whole entry](entries/e0.json)\n"))
	// Many small ones come to an end too.
	body = transcriptBody(t, sessiontest.MessageLine(0,
		`{"role":"user","content":[`+strings.Repeat(`{"type":"image"},`, 5000)+`{"type":"text","text":"end"}]}`))
	require.Equal(t, maxBlocks, strings.Count(body, "An image in the entry"))
	body = transcriptBody(t, sessiontest.MessageLine(0,
		`{"role":"toolResult","content":[`+strings.Repeat(`{"type":"text","text":"`+strings.Repeat("x ", 3000)+`"},`, 500)+`""]}`))
	require.Less(t, len(body), maxOutput+10_000)
	body = transcriptBody(t, sessiontest.MessageLine(0,
		asks+strings.Repeat(`{"type":"toolCall","name":"t","arguments":{"a":"`+strings.Repeat("x ", 3000)+`","b":1}},`, 500)+`""]}`))
	require.Less(t, len(body), maxOutput+500*7000)
}

// TestExcerptCutsAnywhere: wherever a string is cut, what is shown is the beginning and the end of its text,
// without halves of characters or escapes.
func TestExcerptCutsAnywhere(t *testing.T) {
	body := `a\"\\\\\u0041ä\ud83d\ude00 語\n` + "\xff" + `\/z\\`
	whole := string(markdown.Visible(rawjson.AppendDecoded(nil, []byte(body))))
	v := rawjson.Value(`"` + body + `"`)
	for head := range len(body) {
		for tail := range len(body) - head {
			e := excerptOf(v, excerptLimits{whole: head + tail, head: head, tail: tail})
			require.True(t, strings.HasPrefix(whole, string(e.head)), "%d: %q", head, e.head)
			require.True(t, strings.HasSuffix(whole, string(e.tail)), "%d: %q", tail, e.tail)
			require.True(t, utf8.Valid(e.head) && utf8.Valid(e.tail))
			require.LessOrEqual(t, len(e.head), 3*head)
		}
	}
	e := excerptOf(v, excerptLimits{whole: len(body)})
	require.Equal(t, whole, string(e.head))
	require.Zero(t, e.left)
}

func shownValueText(text string) (string, bool) {
	v := valueText{b: &builder{}, left: maxValue}
	v.write(rawjson.Value(text))
	return string(v.out), v.b.cut
}

func TestValueText(t *testing.T) {
	sessiontest.Page(t, "testdata/values.txt", func(t *testing.T, _, value, want string) {
		got, cut := shownValueText(value)
		require.Equal(t, want, got)
		require.False(t, cut, value)
	})
}

func TestValueTextIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"deep":    strings.Repeat(`{"k":[`, 5000) + strings.Repeat(`]}`, 5000),
		"wide":    "[" + strings.Repeat(`"an element",`, 50_000) + "0]",
		"members": "{" + strings.Repeat(`"an element":1,`, 50_000) + `"last":0}`,
		"long":    `{"content":"` + strings.Repeat(`line\n`, 100_000) + `"}`,
		"list":    `{"edits":[` + strings.Repeat(`{"old":"a\nb"},`, 50_000) + `{}]}`,
		"key":     `{"` + strings.Repeat(`k`, 100_000) + `":1}`,
	} {
		got, cut := shownValueText(text)
		require.Less(t, len(got), 2*maxValue, name)
		require.Equal(t, name != "key", cut, name)
	}
}
