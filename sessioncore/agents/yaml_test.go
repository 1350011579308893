package agents

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestYAML: the texts of a mapping's members, in all forms.
func TestYAML(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"id: x\nname: Is the bridge open?\n": "Is the bridge open?",
		"name: 'It''s: open'\nuser_named: true\n":  "It's: open",
		"name: \"a\\tb \\u00e9\"\n":                "a\tb é",
		"user_name: x\n":                           "",
		"name: |-\n  First line\n  second\nid: x":  "First line\nsecond",
		"name: >-\n  folded\n  text\n\nid: x":      "folded text",
		"name: a long one that\n  goes on\nid: x":  "a long one that goes on",
		"name:\n  below\nid: x":                    "below",
		"name: null\n":                             "",
		"name: ~":                                  "",
		"name: 'torn\nid: x":                       "'torn",
		"summary: name\nname: \"The lamp\": fine'": "\"The lamp\": fine'",
	} {
		require.Equal(t, want, YAMLText(text, "name"), text)
	}
}
