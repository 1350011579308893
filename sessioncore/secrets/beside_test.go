package secrets

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// leftOf returns which parts of the secrets of formats a text shows.
func leftOf(text string) (left []string) {
	for _, secret := range []string{
		mixed(9), mixed(40)[30:], lower(40)[30:], hexed(40)[30:], digits(13)[5:], upper(24)[10:], uuid[10:], "correcthorse", "swordfish",
	} {
		if strings.Contains(text, secret) {
			left = append(left, secret)
		}
	}
	return left
}

// written returns a text in all ways in which a session file can have it: as a string, as a string
// in JSON in strings, and as it is.
func written(text string) (lines []string) {
	line := text
	for _, key := range []string{"text", "arguments", "a", "a"} {
		line = `{"` + key + `":` + plain(line) + `}`
		lines = append(lines, line)
	}
	return append(lines, text+"\n")
}

// requireMasked requires that lines show none of the secrets, or of those of formats.
func requireMasked(t *testing.T, lines []string, secrets ...string) {
	t.Helper()
	for _, line := range lines {
		out := masked(scan(t, line), line)
		require.Equal(t, json.Valid([]byte(line)), json.Valid([]byte(out)), out)
		if secrets == nil {
			require.Empty(t, leftOf(out), "%q became %q", line, out)
		}
		for _, secret := range secrets {
			require.NotContains(t, out, secret, line)
		}
	}
}

// isOfName reports whether a format of another test is known by the name before it alone.
func isOfName(example string) bool { return strings.ContainsAny(example, " =\n:<@") }

// TestBeside puts each format directly between its possible neighbors: escapes, encodings and signs.
func TestBeside(t *testing.T) {
	turn := 0
	for what, example := range formats {
		for _, around := range []string{
			"\x1b[01;31m\x1b[K%s\x1b[m\x1b[K", "\x1b[31m%s", "\x1b[38;2;1;2;3m%s\x1b[0m", "\x1b(B\x1b[m%s", "\u009b1m%s\u009bm", "\x1b]0;%s\a",
			`\x1b[31m%s\x1b[0m`, `\033[1;32m%s\033[0m`, `\e[31m%s\e[0m`, "^[[31m%s^[[m", `\u001b[31m%s`, `\t%s\t`, `\r%s`,
			"url?a=1%%26key%%3D%s%%26b", "key=3D%s=20x", `x\x3d%s`, "%s\n", "\ufeff%s\u200b", "|%s|", "%%22%s%%22",
		} {
			const percent = "\x00" // stands for %% while %s is replaced
			around = strings.ReplaceAll(around, "%%", percent)
			text := strings.Replace(around, "%s", example, 1)
			text = strings.ReplaceAll(text, percent, "%")
			if isOfName(example) && !strings.Contains(around, "\x1b[") {
				continue // the text before a secret says where it ends
			}
			turn++
			lines := written(text)
			line := lines[turn%len(lines)] // one of them, as all take long
			t.Run(what, func(t *testing.T) { requireMasked(t, []string{line}) })
		}
		isCommon := slices.ContainsFunc(Known().rules, func(r *rule) bool {
			return r.common && r.regex().MatchString(" "+example)
		})
		if !isCommon && !isOfName(example) {
			t.Run(what, func(t *testing.T) { requireMasked(t, written("MY_KEY_"+example)) })
		}
	}
}

// TestNames: testdata/names.txt has secrets in the forms in which a name stands before them, and keys of which a part is
// colored.
func TestNames(t *testing.T) {
	lines("testdata/names.txt", func(text string) {
		requireMasked(t, written(text), mixed(12), mixed(14), mixed(78), mixed(95), "correcthorse",
			mixed(22), mixed(27), mixed(43), mixed(53), mixed(86), hexed(32), hexed(40), hexed(128), mixed(30), mixed(32))
	})
	object := `{"env":[{"name":"API_KEY","value":"` + mixed(14) + `"}]}`
	requireMasked(t, []string{object}, mixed(14))
}
