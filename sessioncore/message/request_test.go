package message

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestRequests: one function tells the words of a person from all else, in each spelling.
func TestRequests(t *testing.T) {
	sessiontest.Table(t, "testdata/requests.txt", func(t *testing.T, _, text string) string {
		m := Read(rawjson.Value(text))
		words, ok := Request(&m)
		require.Equal(t, IsRequest(&m), ok)
		require.Equal(t, len(words) > 0, ok)
		return string(words)
	})
}

// TestSkillOf: the text of a skill is told from a person's words, by its name.
func TestSkillOf(t *testing.T) {
	const skill = `"<skill name=\"t\" location=\"/t\">\nbody\n</skill>"`
	for text, want := range map[string]string{
		`{"role":"user","content":` + skill + `}`:                                                        "t",
		`{"role":"user","content":[{"type":"image"},{"type":"text","text":` + skill + `}]}`:              "t",
		`{"role":"user","content":` + skill + `,"synthetic":true}`:                                       "",
		`{"role":"user","content":"t"}`:                                                                  "",
		`{"customType":"skill-prompt","attribution":"user","content":"x","details":{"name":"t"}}`:        "t",
		`{"customType":"skill-prompt","attribution":"agent","content":"x","details":{"name":"t"}}`:       "",
		`{"customType":"collab-prompt","attribution":"user","content":"x","details":{"name":"a guest"}}`: "",
	} {
		m := Read(rawjson.Value(text))
		require.Equal(t, want, SkillOf(&m), text)
	}
}

// TestFirstText: the first text with words counts, in each spelling.
func TestFirstText(t *testing.T) {
	for content, want := range map[string]string{
		`"a"`: `"a"`, `[]`: "", `[{"type":"image"}]`: "", `["a"]`: `"a"`,
		`[{"type":"text","text":" \n"},{"type":"input_text","text":"b"}]`: `"b"`,
	} {
		require.Equal(t, want, string(FirstText(rawjson.Value(content))), content)
	}
}

// TestTypedIsCheap: a long text that no program wrapped is not decoded, nor copied.
func TestTypedIsCheap(t *testing.T) {
	content := rawjson.Value(`[{"type":"text","text":"` + strings.Repeat(`a\n`, 1<<20) + `"}]`)
	m := Read(rawjson.Value(`{"role":"user","content":` + string(content) + `}`))
	var words rawjson.Value
	allocated := testing.AllocsPerRun(10, func() { words, _ = Request(&m) })
	require.Equal(t, content, words)
	require.LessOrEqual(t, allocated, 10.0)
}
