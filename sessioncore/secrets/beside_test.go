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
func written(text string) []string {
	once := `{"text":` + plain(text) + `}`
	twice := `{"arguments":` + plain(once) + `}`
	thrice := `{"a":` + plain(twice) + `}`
	return []string{once, twice, thrice, `{"a":` + plain(thrice) + `}`, text + "\n"}
}

// requireMasked requires that a text shows none of its secrets, in whichever way it is written.
func requireMasked(t *testing.T, text string, secrets ...string) {
	t.Helper()
	requireMaskedIn(t, written(text), secrets...)
}

func requireMaskedIn(t *testing.T, lines []string, secrets ...string) {
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
			around = strings.ReplaceAll(around, "%%", "\x00")
			text := strings.ReplaceAll(strings.Replace(around, "%s", example, 1), "\x00", "%")
			if isOfName(example) && !strings.Contains(around, "\x1b[") {
				continue // the text before a secret says where it ends
			}
			turn++
			lines := written(text)
			t.Run(what, func(t *testing.T) { requireMaskedIn(t, lines[turn%len(lines):][:1]) })
		}
		common := slices.ContainsFunc(Known().rules, func(r *rule) bool {
			return r.common && r.regex().MatchString(" "+example)
		})
		if !common && !isOfName(example) {
			t.Run(what, func(t *testing.T) { requireMasked(t, "MY_KEY_"+example) })
		}
	}
}

// TestTwoColors has keys of which a part is colored, as grep does it.
func TestTwoColors(t *testing.T) {
	key := "sk-ant-" + "api03-" + mixed(95)
	for _, text := range []string{
		"\x1b[31m" + key[:6] + "\x1b[m" + key[6:], key[:20] + "\x1b[31m" + key[20:30] + "\x1b[m" + key[30:], "password=\x1b[32m" + mixed(12) + "\x1b[m",
		"\x1b[33mpassword\x1b[0m: \x1b[32m\"" + mixed(12) + "\"\x1b[0m", `\x1b[31msk-\x1b[m` + key[3:],
	} {
		requireMasked(t, text, key[40:], mixed(12))
	}
}

// TestNames has secrets in the forms in which a name stands before them.
func TestNames(t *testing.T) {
	secret := mixed(14)
	for _, text := range []string{
		"FROM x\nENV API_TOKEN " + secret + "\nRUN y", "ENV DB_PASSWORD correcthorse", "ENV  SECRET_KEY \"" + secret + "\"", "ARG NPM_TOKEN=" + secret,
		"set -x GITHUB_TOKEN " + secret, "set -gx OPENAI_API_KEY '" + secret + "'; and y", "set --global --export API_KEY " + secret,
		"set -Ux my_secret " + secret,
		"setenv DB_PASSWORD " + secret, "setx API_KEY " + secret + "\r\n", `setx API_KEY "` + secret + `" /M`,
		"mysql -u root -p" + secret + " db", "mysqldump -h db -p'" + secret + "' x > y", "mariadb --host=db -p" + secret, "mysqladmin -p" + secret + " ping",
		"redis-cli -h x -a " + secret, "curl -s -u me:" + secret + " https://x.org", "curl --user me:" + secret + " x",
		`<add key="ApiKey" value="` + secret + `"/>`, `<property name='db.password' value='` + secret + `'/>`, `<string name="api_key">` + secret + `</string>`,
		`<entry key="token">` + secret + `</entry>`, "- name: API_KEY\n  value: " + secret + "\n", "- name: DB_PASSWORD\n  value: \"" + secret + "\"\n",
		`{"name": "API_KEY", "value": "` + secret + `"}`, `{"name":"X_TOKEN","value":"` + secret + `"}`, `{"key":"db_password","value":"` + secret + `"}`,
		`{"api_key":"` + secret + `"}`, "token%3D" + secret + "%26b=1", "api_key=3D" + secret + "&b", `{\"password\":\"` + secret + `\"}`,
		"%22password%22%3A%22" + secret + "%22", "a%0Apassword%3D" + secret,
	} {
		requireMasked(t, text, secret, "correcthorse")
	}
	object := `{"env":[{"name":"API_KEY","value":"` + secret + `"}]}`
	require.NotContains(t, masked(scan(t, object), object), secret)
}
