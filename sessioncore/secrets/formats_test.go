package secrets

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

func upper(n int) string  { return pick(n, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") }
func lower(n int) string  { return pick(n, "abcdefghijklmnopqrstuvwxyz0123456789") }
func digits(n int) string { return pick(n, "0123456789") }

// placeholder stands for characters in the lines of testdata, which thus have no secret: "⟨mixed 40⟩" for 40 of that kind,
// "⟨⟩" for none.
var placeholder = regexp.MustCompile(`⟨(\w*) ?([0-9]*)⟩`)

// lines calls use with each line of a file of testdata but comments, with its characters for placeholders.
func lines(file string, use func(line string)) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	kinds := map[string]func(n int) string{"mixed": mixed, "hexed": hexed, "lower": lower, "upper": upper, "digits": digits}
	words := map[string]string{"": "", "newline": "\n", "return": "\r", "escape": "\x1b", "bytes": "\xff\xfe", "uuid": uuid}
	charactersOf := func(short string) string {
		parts := placeholder.FindStringSubmatch(short)
		name := parts[1]
		kind := kinds[name]
		if kind != nil {
			count, _ := strconv.Atoi(parts[2])
			return kind(count)
		}
		word, isKnown := words[name]
		if !isKnown {
			panic(short)
		}
		return word
	}
	for line := range strings.Lines(string(text)) {
		isComment := strings.HasPrefix(line, "# ")
		if isComment {
			continue
		}
		expanded := sessiontest.Expand(strings.TrimSuffix(line, "\n"))
		use(placeholder.ReplaceAllStringFunc(expanded, charactersOf))
	}
}

// formats are well-known formats of keys and tokens, an example of each, made at run time. Those that are known only by the
// name before them have it there.
var formats = func() map[string]string {
	all := map[string]string{}
	lines("testdata/formats.txt", func(line string) {
		name, example, _ := strings.Cut(line, ": ")
		all[name] = example
	})
	return all
}()

// plain returns a text as a JSON string.
func plain(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// TestFormats plants each format where tokens stand in sessions, and looks for the parts of it that could be used.
func TestFormats(t *testing.T) {
	require.GreaterOrEqual(t, len(formats), 93)
	for name, example := range formats {
		hasNameBefore := strings.ContainsAny(example, " =\n")
		for _, around := range []string{"%s", "see %s.", "(%s)", "a, %s, b", "<b>%s</b>", "`%s`", "x\n%s\ny"} {
			hasSigns := strings.ContainsAny(around, "(,<`.")
			if hasNameBefore && hasSigns {
				continue // the text before a secret says where it ends
			}
			text := strings.Replace(around, "%s", example, 1)
			requireFormatMasked(t, name, plain(text))
			nested := plain("a\n" + text + "\nb")
			requireFormatMasked(t, name, plain(nested))
		}
	}
}

// requireFormatMasked requires that the secret of a format, in a JSON string, is masked in a line of a session, and
// nothing else of that line.
func requireFormatMasked(t *testing.T, name, text string) {
	t.Helper()
	begin := `{"type":"message","id":"019e2c5b-77aa-7c01-9d3e-6a5b4c3d2e1f","parentId":"4f6a9d31",` +
		`"signature":"EqQBCkYI` + mixed(33) + `","text":`
	const end = `,"tokens":12,"max_tokens":4096}`
	line := begin + text + end
	out := masked(scan(t, line), line)
	require.True(t, json.Valid([]byte(out)), name)
	shown, hasBegin := strings.CutPrefix(out, begin)
	require.True(t, hasBegin, "all but the secret stays: %s", out)
	require.True(t, strings.HasSuffix(shown, end), "all but the secret stays: %s", out)
	require.Contains(t, shown, "*****", "%s in %s", name, line)
	require.Empty(t, leftOf(shown), "%s in %s", name, line)
}

// TestNoSecrets: testdata/innocent.txt has, for each class of rules, texts that look like secrets and are none.
func TestNoSecrets(t *testing.T) {
	lines("testdata/innocent.txt", func(text string) {
		alone := map[string]string{"text": text}
		inLines := map[string]any{"a": []string{"x\n" + text + "\ny"}}
		for _, object := range []any{alone, inLines} {
			line, _ := json.Marshal(object)
			require.Empty(t, scan(t, string(line)).Places, text)
		}
	})
	require.NoError(t, filepath.WalkDir("../../testdata", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(file) == ".jsonl" {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Empty(t, scan(t, string(text)).Places, file)
		}
		return err
	}))
	for _, member := range []string{`{"id":"0123abcd4","token":"$TOKEN"}`, `{"password":""}`, `{"password":null,"token":12345678}`,
		`{"signature":"` + mixed(300) + `"}`, `{"toolCallId":"call_` + mixed(24) + `"}`} {
		require.Empty(t, scan(t, member).Places, member)
	}
}
