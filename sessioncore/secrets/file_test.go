package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ownRules(t *testing.T, text string) (*Rules, error) {
	name := filepath.Join(t.TempDir(), "rules.toml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return Read(name)
}

// TestOwnRules: rules of a file are used beside the known ones, with all that gitleaks has for them.
func TestOwnRules(t *testing.T) {
	rules, err := Read("testdata/rules.toml")
	require.NoError(t, err)
	known := Known()
	for text, want := range map[string]string{
		"a badge-1234-hidden":                       "a badge-1234-******",
		"Badge-1234-hidden":                         "Badge-1234-hidden",
		"badge-1234-public":                         "badge-1234-public",
		"xΩ123y":                                    "x*****y",
		"code=" + mixed(20):                         "code=********************",
		"code=aaaaaaaaaaaaaaaaaaaa":                 "code=aaaaaaaaaaaaaaaaaaaa",
		"code=sample" + mixed(20):                   "code=sample" + mixed(20),
		"code=azz" + mixed(20):                      "code=azz" + mixed(20),
		"code=bzz" + mixed(20):                      "code=***********************",
		"code=" + mixed(20) + " # no secret":        "code=" + mixed(20) + " # no secret",
		"ghp-abcd":                                  "********",
		"npm" + "_" + mixed(36):                     "npm_" + mixed(36),
		"gsk" + "_demo" + mixed(47):                 "gsk_demo" + mixed(47),
		"gsk" + "_" + mixed(20) + "public" + "0000": "gsk_" + mixed(20) + "public0000",
		"glp" + "at-" + mixed(20):                   "**************************",
	} {
		line := `{"text":` + plain(text) + `}`
		s := &Scan{Rules: rules}
		require.NoError(t, s.Extend(t.Context(), strings.NewReader(line), int64(len(line))))
		require.Equal(t, `{"text":`+plain(want)+`}`, masked(s, line))
	}
	require.True(t, rules.In("badge-1234-hidden"))
	require.False(t, known.In("badge-1234-hidden"))
	require.Same(t, known, Known())
	require.True(t, known.In("npm"+"_"+mixed(36)), "the known rules stay what they are")
}

// TestBadRules: a file that cannot be used as it is meant is refused, with what of it and where.
func TestBadRules(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[[rules]]\nid = \"a\"\nregex = 'x'\n\n[[rules]]\nid = \"b\"\nregex = '(?=x)'\n",
			`rule "b" (line 5): error parsing regexp: invalid or unsupported Perl syntax: ` + "`(?=`"},
		{"[[rules]]\nid = \"a\"\nregex = '(x)'\nsecretGroup = 2", `rule "a" (line 1): its regex has 1 groups, and secretGroup is 2`},
		{"[[rules]]\nid = \"a\"", `rule "a" (line 1): it has no regex`},
		{"[[rules]]\nregex = 'x'", `rule "" (line 1): it has no id`},
		{"rules = [{id = \"a\", regex = 'x*'}]", `rule "a": its regex matches an empty text`},
		{"[[rules]]\nid = \"a\"\nregex = 'x'\n[[rules.required]]\nid = \"b\"", `rule "a" (line 1): it needs matches of other rules`},
		{"[[rules]]\nid = \"a\"\nregex = 'x'\n[rules.allowlist]\nregexes = ['(']", `rule "a" (line 1): allowlist: error parsing regexp`},
		{"[[rules]]\nid = \"a\"\nregex = 'x'\n[[rules.allowlists]]\ncondition = \"XOR\"", `the condition is "XOR"`},
		{"[[rules]]\nid = \"a\"\nregex = 'x'\n[[rules.allowlists]]\nregexTarget = \"commit\"", `regexTarget is "commit"`},
		{"[[allowlists]]\nstopwords = [\"\"]", "a stopword has at least 2 letters"},
		{"[[rules]]\nid = \"a\"\nregexp = 'x'", "rules.regexp is not known here"},
		{"[[rules]]\nid = \"a\"\nregex = \"\\d\"", "line 3"},
		{"[extend]\npath = \"x.toml\"", "put those rules into this file"},
	} {
		_, err := ownRules(t, c.text)
		require.ErrorContains(t, err, c.want, c.text)
		require.ErrorContains(t, err, "rules.toml")
	}
	_, err := Read(t.TempDir())
	require.ErrorContains(t, err, "not a file")
	_, err = Read("/nonexistent")
	require.ErrorIs(t, err, os.ErrNotExist)
}
