package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/mountopts"
)

// plantedToken is a secret that a rule knows by its beginning. It is put together here so that no scanner finds it in
// this file; so is plantedPassword, which is known by the name before it alone, plantedURL, by the URL that it is in, and
// plantedSetting, by the assignment. plantedBadge is known by plantedRules alone.
var (
	plantedToken    = "ghp" + "_" + "R7tq2LmX9vKc4WzN8bHdY3fJp6sGa1uEoQ5i"
	plantedPassword = strings.Join([]string{"kV3x", "Qm9T", "r2Lz", "8Wd5", "Ns7B"}, "")
	plantedURL      = strings.Join([]string{"tR5", "wQ8", "zL2"}, "")
	plantedSetting  = strings.Join([]string{"mule", "kick"}, "")
	plantedBadge    = strings.Join([]string{"otter", "and", "heron"}, "")
)

const plantedRules = `[[rules]]
id = "badge"
regex = '''badge-\d+-([a-z]+)'''
keywords = ["badge-"]
`

// plantedSession is a session with secrets in whatever can hold text.
func plantedSession(id string) string {
	escaped := ""
	for _, c := range plantedToken {
		escaped += fmt.Sprintf(`\u%04x`, c)
	}
	return strings.NewReplacer("ID", id, "TOKEN", plantedToken, "WORD", plantedPassword, "ESCAPED", escaped, "URL", plantedURL, "SETTING",
		plantedSetting, "BADGE", plantedBadge).Replace(
		`{"type":"session","version":3,"id":"ID","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/TOKEN/x","title":"about TOKEN"}
{"type":"message","id":"00000001","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z",` +
			`"message":{"role":"user","content":"first WORD then postgres://app:URL@db/x; export DB_PASSWD=SETTING; badge-7-BADGE.","timestamp":1}}
{"type":"message","id":"00000002","parentId":"00000001","timestamp":"2026-01-02T03:04:07.000Z",` +
			`"message":{"role":"assistant","content":[{"type":"thinking","thinking":"TOKEN?"},{"type":"text","text":"ESCAPED"},` +
			`{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"login","env":{"API_KEY":"WORD"}}}],` +
			`"api":"a","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,` +
			`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":2}}
{"type":"message","id":"00000003","parentId":"00000002","timestamp":"2026-01-02T03:04:08.000Z",` +
			`"message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"{\"password\":\"WORD\"}"}],` +
			`"isError":false,"timestamp":3}}
{"type":"label","id":"00000004","parentId":"00000003","timestamp":"2026-01-02T03:04:09.000Z","targetId":"00000003","label":"TOKEN"}
{"type":"custom","id":"TOKEN","parentId":"00000004","timestamp":"2026-01-02T03:04:10.000Z","customType":"x","data":{"TOKEN":["WORD"]}}
not JSON: TOKEN
`)
}

// plantedStore is an agent directory with one such session, p/s.
func plantedStore(t *testing.T) string {
	a := t.TempDir()
	writeFile(t, filepath.Join(a, "sessions", "p", "s.jsonl"), plantedSession("s"))
	return a
}

// TestSecrets reads secrets.jsonl with jq, before and after the session grows, and looks for the secrets in it.
func TestSecrets(t *testing.T) {
	a := plantedStore(t)
	m := mountForTest(t, a)
	file := m.session("s", "secrets.jsonl")
	require.Equal(t, `1 null /cwd github-pat
1 null /title github-pat
2 00000001 /message/content generic-api-key
2 00000001 /message/content url-password
2 00000001 /message/content password-assignment
3 00000002 /message/content/0/thinking github-pat
3 00000002 /message/content/1/text github-pat
3 00000002 /message/content/2/arguments/env/API_KEY generic-api-key
4 00000003 /message/content/0/text generic-api-key
5 00000004 /label github-pat
6 * /id github-pat
6 * /data/* github-pat
6 * /data/*/0 generic-api-key
7 null null github-pat
`, run(t, "jq", "-r", `"\(.line) \(.entry) \(.where) \(.kind)"`, file))
	text := run(t, "cat", file)
	require.NotContains(t, text, plantedToken[:8])
	require.NotContains(t, text, plantedPassword[:8])
	require.Equal(t, fmt.Sprintln(len(text)), run(t, "stat", "-c", "%s", file))

	grow(t, filepath.Join(a, "sessions", "p", "s.jsonl"),
		`{"type":"custom","id":"00000007","parentId":"00000004","timestamp":"2026-01-02T03:04:10.000Z","customType":"x","data":"`+plantedToken+"\"}\n")
	require.Equal(t, "15\n", run(t, "jq", "-s", "length", file))
	require.Equal(t, `{"line":8,"entry":"00000007","where":"/data","kind":"github-pat"}`, strings.Split(run(t, "cat", file), "\n")[14])
}

// TestRedacted walks all of a redacted mount with tools, and finds neither secret in any name, file or link. What can be
// named without being listed is looked at too.
func TestRedacted(t *testing.T) {
	a := plantedStore(t)
	p := filepath.Join(a, "sessions", "p")
	require.NoError(t, os.MkdirAll(filepath.Join(p, "s", "sub"), 0o755))
	for name, text := range map[string]string{
		"s/1.bash.log":  plantedToken,
		"s/sub/a.jsonl": plantedSession("sub"),
		"t.jsonl":       strings.ReplaceAll(plantedSession("t"), "{", " {"),
		"noise.jsonl":   "garbage " + plantedToken + "\n",
		"Makefile":      "TOKEN=" + plantedToken,
		"s/x.jsonl.bak": plantedToken,
		"old.jsonl": `{"type":"session","id":"old","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/x"}` + "\n" +
			`{"type":"message","message":{"role":"user","content":"` + plantedToken + `"}}` + "\n",
		"op.jsonl": `{"type":"session_header","id":"op","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/x"}` + "\n" +
			`{"type":"session_info","id":"1","parent_id":null,"timestamp":"2026-01-02T03:04:05.000Z","name":"` + plantedToken + `"}` + "\n",
		"several.jsonl": "{\n \"type\":\"session\",\n \"version\":3,\n \"id\":\"several\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"cwd\":\"" +
			plantedToken + "\"}\n",
		"../../blobs/b": plantedToken,
	} {
		file := filepath.Join(p, name)
		writeFile(t, file, text)
	}
	require.NoError(t, os.WriteFile(filepath.Join(p, plantedToken+".jsonl"), []byte(plantedSession("named")), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(a, "sessions", plantedToken), 0o755))
	require.NoError(t, os.Symlink(plantedToken, filepath.Join(p, "link")))
	writeFile(t, filepath.Join(a, "terminal-sessions", "pts-1"), plantedToken)

	m := mountForTest(t, a, redacted, ownRules(t))
	seen := shell(t, `cd "$1"; find . -printf '%p %l\n'
		for f in $(find . -type f ! -name '*.log' ! -name '*.bak' ! -name Makefile); do cat "$f" || echo "failed $f"; done
		for s in sessions/p/s sessions/p/s/sub/a sessions/p/t; do for b in "$s"/entries/*; do i=$(basename "$b" .json)
		find "$s/branches/.by-id/$i" "$s/tree/$i" -printf '%p %l\n'; cat "$s/branches/.by-id/$i"/*.* "$s/branches/.by-id/$i"/path/*; done; done
		ls -la --full-time sessions/p/s by-cwd by-date/* by-id recent; tail -c +1 last-error`, m.dir)
	for _, secret := range []string{plantedToken[4:20], plantedPassword[5:], plantedURL, plantedSetting, plantedBadge} {
		require.NotContains(t, seen, secret)
	}
	require.Contains(t, seen, "postgres://app:*********@db/x; export DB_PASSWD=********; badge-7-*************.")
	require.Equal(t, "badge\n", run(t, "jq", "-r", `select(.line == 2) | .kind | select(test("badge"))`, m.session("s", "secrets.jsonl")))
	require.Equal(t, run(t, "cat", m.session("s", "secrets.jsonl")), run(t, "cat", mountForTest(t, a, redacted, ownRules(t)).session("s", "secrets.jsonl")))
	require.NotContains(t, seen, "failed ")
	stars := strings.Repeat("*", len(plantedToken))
	require.Contains(t, seen, `"text":"`+strings.Repeat("*", 6*len(plantedToken))+`"`, "of an escape each byte")
	require.Equal(t, "about "+stars+"\n", run(t, "cat", m.session("s", "title")))
	run(t, "jq", ".", m.session("s", "context.json"), m.session("s", "usage.json"), m.path("index.jsonl"))
	require.Equal(t, "README\nby-cwd\nby-date\nby-file\nby-id\nindex.jsonl\nlast-error\nnew-session\nrecent\nsearch\nsessions\n", run(t, "ls", m.dir))
	for _, gone := range []string{"blobs", "blobs/b", "history", "terminal-sessions", "continue", "sessions/" + plantedToken, "sessions/p/link"} {
		absent(t, m.path(gone))
	}
	for _, name := range []string{"sessions/p/Makefile", "sessions/p/s/1.bash.log", "sessions/p/s/artifacts/1.bash.log"} {
		_, err := os.ReadFile(m.path(name))
		require.ErrorIs(t, err, os.ErrPermission, name)
	}
	for _, name := range []string{"append", "title", "labels", "fork", "cwd"} {
		require.ErrorIs(t, os.WriteFile(m.session("s", name), []byte("x\n"), 0), syscall.EROFS, name)
	}
	require.ErrorIs(t, os.WriteFile(m.path("new-session"), []byte("/x\n"), 0), syscall.EROFS)
	require.ErrorIs(t, os.Symlink("00000001", m.session("s", "x")), syscall.EROFS)
}

func redacted(c *mountConfig) { c.options.Redact = true }

// ownRules adds plantedRules to those of a redacted mount.
func ownRules(t *testing.T) mountOption {
	file := filepath.Join(t.TempDir(), "rules.toml")
	require.NoError(t, os.WriteFile(file, []byte(plantedRules), 0o600))
	return func(c *mountConfig) { c.options.RedactRules = file }
}

// TestRedactedAgents greps a redacted mount of several agents for what is planted in the sessions of each, and in what is
// beside them.
func TestRedactedAgents(t *testing.T) {
	dirs, all := allAgents(t)
	secrets := "postgres://app:" + plantedURL + "@db/x DB_PASSWD=" + plantedSetting + " badge-7-" + plantedBadge + ". " + plantedToken
	for agent, file := range map[string]string{
		"omp": "sessions/--srv-w--/planted.jsonl", "claude": "projects/" + claudeDemo + ".jsonl",
		"codex": "sessions/2026/05/12/" + filepath.Base(codexDemo) + ".jsonl",
	} {
		file = filepath.Join(dirs[agent], file)
		lines := plantedSession("planted")
		if text, err := os.ReadFile(file); err == nil {
			lines = strings.ReplaceAll(string(text), "tide", secrets+" tide")
			require.NotEqual(t, string(text), lines)
		}
		writeFile(t, file, lines)
	}
	m := mountForTest(t, mountopts.All, all, redacted, ownRules(t))
	found := shell(t, `cd "$1"; shift; for secret; do cat "search/$secret/results.tsv" | tail -n +2; grep -rl -e "$secret" . ; find . -name "*$secret*"
		grep -l -e "$secret" lost.tsv usage.jsonl sessions/*/*/*/secrets.jsonl sessions/*/*/secrets.jsonl
		done 2>&1 | grep -v 'Permission denied\|No such file'; cat last-error`,
		m.dir, plantedToken[4:20], plantedPassword[5:], plantedURL, plantedSetting, plantedBadge)
	require.Empty(t, found)
	require.Equal(t, "3\n", shell(t, `grep -rlE 'app:\*{9}@db/x.*DB_PASSWD=\*{8}.*badge-7-\*{13}' "$1" --include='*.jsonl' | wc -l`, m.path("sessions")))
}
