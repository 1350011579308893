package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sample is a tool with a parameter of each kind.
var sample = Tool{
	Name: "find",
	Parameters: []Parameter{
		{Name: "query", IsRequired: true, Most: 20},
		{Name: "most", IsNumber: true, Most: 50},
		{Name: "note", Most: 300},
	},
}

// TestArguments: arguments have the values of the JSON; a missing number has its default.
func TestArguments(t *testing.T) {
	a, err := sample.parse(json.RawMessage(`{"query":"a \"phrase\"\n","most":7.0,"note":null}`))
	require.NoError(t, err)
	require.Equal(t, "a \"phrase\"\n", a.Text("query"))
	require.Equal(t, 7, a.Number("most", 3))
	require.Empty(t, a.Text("note"))
	a, err = sample.parse(json.RawMessage(`{"query":"tide"}`))
	require.NoError(t, err)
	require.Equal(t, 3, a.Number("most", 3))
}

// TestArgumentsRefused: an argument of another kind, beyond its bound or not of the tool is refused in plain words, which
// control no terminal and repeat little.
func TestArgumentsRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                                  "find needs query",
		`null`:                              "find needs query",
		`{}`:                                "find needs query",
		`{"query":null}`:                    "find needs query",
		`[]`:                                "the arguments of find must be one JSON object, not []",
		`"x"`:                               `the arguments of find must be one JSON object, not "x"`,
		`{"query":5}`:                       "query must be a text, not 5",
		`{"query":["x"]}`:                   `query must be a text, not ["x"]`,
		`{"query":{"a":1}}`:                 `query must be a text, not {"a":1}`,
		`{"query":true}`:                    "query must be a text, not true",
		`{"query":" "}`:                     "query is empty",
		`{"query":"x\u0000y"}`:              `query has a control character: "x\u0000y"`,
		`{"query":"\u001b[2J"}`:             `query has a control character: "\u001b[2J"`,
		`{"query":"123456789012345678901"}`: "query has 21 bytes; it may have 20",
		`{"query":"x","most":0}`:            "most must be a whole number from 1 to 50, not 0",
		`{"query":"x","most":-1}`:           "most must be a whole number from 1 to 50, not -1",
		`{"query":"x","most":51}`:           "most must be a whole number from 1 to 50, not 51",
		`{"query":"x","most":1.5}`:          "most must be a whole number from 1 to 50, not 1.5",
		`{"query":"x","most":1e400}`:        "most must be a whole number from 1 to 50, not 1e400",
		`{"query":"x","most":"7"}`:          `most must be a whole number from 1 to 50, not "7"`,
		`{"query":"x","source":"/etc"}`:     "find has no parameter source; it has query, most, note, cursor",
		`{"query":"x","--everywhere":true}`: "find has no parameter --everywhere; it has query, most, note, cursor",
		`{"query":"x","cursor":5}`:          "cursor must be a text, not 5",
	} {
		_, err := sample.parse(json.RawMessage(text))
		require.EqualError(t, err, want, text)
	}
	_, err := sample.parse(json.RawMessage(`{"query":"x","` + strings.Repeat("y", 5000) + `\u001b[2J":1}`))
	require.ErrorContains(t, err, "yyyy…; it has")
	require.Less(t, len(err.Error()), 200)
	_, err = sample.parse(json.RawMessage(`{"query":"x","\u001b[2J":1}`))
	require.NotContains(t, err.Error(), "\x1b")
}

// TestSchema: a client reads the kinds and bounds that calls are held against.
func TestSchema(t *testing.T) {
	text, err := json.Marshal(sample.schema())
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["query"],"properties":{
		"query":{"type":"string","description":"","maxLength":20},
		"most":{"type":"integer","description":"","minimum":1,"maximum":50},
		"note":{"type":"string","description":"","maxLength":300},
		"cursor":{"type":"string","description":%q,"maxLength":64}}}`, cursorParameter.Description), string(text))
}
