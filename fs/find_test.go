package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Finding sessions: by-id/, by-cwd/, recent/ and index.jsonl (docs/design.md section 5).

// tick is longer than it takes the clock of files to go on: of two files written in one tick neither is
// the newer one.
const tick = 11 * time.Millisecond

// sessionOf is a session with a title in a working directory.
func sessionOf(id, cwd, title string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":%s,"timestamp":"2026-02-16T10:20:30.000Z","cwd":%s,"title":%s}`, quoted(id), quoted(cwd), quoted(title)) + "\n"
}

// age sets when a session of sessions/p was modified: that many minutes ago.
func (a agent) age(name string, minutes int) {
	at := time.Now().Add(-time.Duration(minutes) * time.Minute)
	require.NoError(a.t, os.Chtimes(a.path(name+".jsonl"), at, at))
}

// TestByID: a link for each id, and every key of --resume (package listing, TestResume).
func TestByID(t *testing.T) {
	a := newAgent(t)
	const first, second = "2026-01-01T00-00-00-000Z_0197aaaa", "2026-01-02T00-00-00-000Z_0197bbbb"
	a.write(first, sessionOf("0197aaaa", "/w", "old"))
	a.write(second, sessionOf("0197bbbb", "/w", "new"))
	a.write("odd", sessionOf("../../etc/passwd", "/w", ""))
	a.write("twin", sessionOf("0197bbbb", "/w", "a copy"))
	for i, name := range []string{second, first, "twin", "odd"} {
		a.age(name, i)
	}
	m := mountForTest(t, a.dir)
	require.Equal(t, []string{"%2E.%2F..%2Fetc%2Fpasswd", "0197aaaa", "0197bbbb"}, names(t, m.path("by-id")))
	leads := func(key, want string) {
		t.Helper()
		require.Equal(t, "../sessions/p/"+want, link(t, m.path("by-id", key)), key)
	}
	for key, want := range map[string]string{"0197AA": first, "0197": second, "2026-01-01t": first, "Tw": "twin", "odd": "odd", "%2E.%2F..%2Fetc%2Fpasswd": "odd"} {
		leads(key, want)
	}
	require.Equal(t, "new\n", run(t, "cat", m.path("by-id/0197bbbb/title")))
	a.add(first, "{}\n")
	leads("0197", first) // modified last
	time.Sleep(tick)
	a.add("twin", "{}\n")
	leads("0197bbbb", "twin") // of two with one id
	require.NoError(t, os.Remove(a.path("odd.jsonl")))
	for _, gone := range []string{"odd", "zzz"} {
		_, err := os.Readlink(m.path("by-id", gone))
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

// link reads a link, whose size is that of its target.
func link(t testing.TB, path string) string {
	target, err := os.Readlink(path)
	require.NoError(t, err)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, len(target), int(info.Size()), path)
	require.False(t, filepath.IsAbs(target))
	return target
}

// TestByCwd: the shell's own directory is a path in by-cwd/, whatever it is called.
func TestByCwd(t *testing.T) {
	a, real := newAgent(t), t.TempDir()
	dirs := []string{"plain", ".hidden", "-rf", "%41", "é🌱 a'b\"c", "*", "new\nline", "latest", "deep/" + strings.Repeat("d/", 100) + "end", strings.Repeat("n", 250)}
	for n, dir := range dirs {
		dir = filepath.Join(real, dir)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		a.write(fmt.Sprintf("s%d", n), sessionOf(fmt.Sprintf("id%d", n), dir, fmt.Sprintf("title %d", n)))
	}
	m := mountForTest(t, a.dir)
	for n, dir := range dirs {
		out := shell(t, `cd -- "$1" && cd "$2/by-cwd/$PWD/latest" && cat title`, filepath.Join(real, dir), m.dir)
		require.Equal(t, fmt.Sprintf("title %d\n", n), out, "%q", dir)
	}
	require.Equal(t, []string{"2026-02-16T10-20-title 0", "latest"}, names(t, m.path("by-cwd", real, "plain")))
	listed := names(t, m.path("by-cwd", real))
	for _, name := range []string{".hidden", "-rf", "%6Catest", strings.Repeat("n", 250), "*"} {
		require.Contains(t, listed, name)
	}
	require.Equal(t, "title 0\n", run(t, "cat", m.path("by-cwd", real, "plain/2026-02-16T10-20-title 0/title")))

	a.write("later", sessionOf("later", filepath.Join(real, "plain"), "later"))
	require.Equal(t, "later", filepath.Base(link(t, m.path("by-cwd", real, "plain/latest"))), "a new one is there at once")
	time.Sleep(tick)
	a.add("s0", "{}\n")
	require.Equal(t, "s0", filepath.Base(link(t, m.path("by-cwd", real, "plain/latest"))))
	a.write("s0", sessionOf("id0", filepath.Join(real, "moved"), "title 0"))
	require.Equal(t, "title 0\n", run(t, "cat", m.path("by-cwd", real, "moved/latest/title")))
	require.Equal(t, "later", filepath.Base(link(t, m.path("by-cwd", real, "plain/latest"))))
	shell(t, `echo 'Another title' > "$1/title"; cat "$1/title"`, m.session("later"))
	require.Equal(t, []string{"2026-02-16T10-20-Another title", "latest"}, names(t, m.path("by-cwd", real, "plain")))
}

// TestByDate: the sessions of a day; two of the same minute and title have names of their own.
func TestByDate(t *testing.T) {
	a := newAgent(t)
	for name, at := range map[string]string{"a": "02-16T10:20:30", "b": "02-16T10:20:59", "c": "02-16T23:59:00", "d": "02-17T00:00:00"} {
		a.write(name, strings.Replace(sessionOf(name, "/w", "Tides"), "02-16T10:20:30", at, 1))
	}
	m := mountForTest(t, a.dir)
	require.Equal(t, []string{"2026-02-16", "2026-02-17"}, names(t, m.path("by-date")))
	list := names(t, m.path("by-date/2026-02-16"))
	require.Equal(t, []string{"23-59-Tides", "latest"}, list[2:])
	require.Equal(t, "a b\n", shell(t, `cd "$1" && shift && echo $(jq -r .id "$1/header.json" "$2/header.json" | sort)`, m.path("by-date/2026-02-16"), list[0], list[1]))
	require.Equal(t, "d\n", run(t, "jq", "-r", ".id", m.path("by-date/2026-02-17/00-00-Tides/header.json")))
}

// TestRecent: the 50 that were modified last, called as the client's lists call them.
func TestRecent(t *testing.T) {
	a := newAgent(t)
	for n := range 55 {
		name := fmt.Sprintf("s%02d", n)
		a.write(name, sessionOf(name, "/w", "Title of "+name))
		a.age(name, n)
	}
	a.write("s03", header("s03"), entry(0, "e0", "", "The first prompt, which is longer than forty characters"))
	a.age("s03", 3)
	a.write("s04", sessionOf("a/b", "/w", "\x1b[31mred\x07 \u0085../"))
	a.age("s04", 4)
	a.write("s05", header("%id"))
	a.age("s05", 5)
	for n, parent := range map[int]string{7: "/elsewhere/sessions/p/s02.jsonl", 8: "s54", 9: "a/b"} {
		name := fmt.Sprintf("s%02d", n)
		a.write(name, strings.Replace(sessionOf(name, "/w", "Fork"), "}\n", `,"parentSession":`+quoted(parent)+"}\n", 1))
		a.age(name, n)
	}
	m := mountForTest(t, a.dir)
	recent := func() []string { return names(t, m.path("recent")) }
	list := recent()
	require.Len(t, list, 50)
	require.Equal(t, []string{
		"01-Title of s00", "02-Title of s01", "03-Title of s02", "04-The first prompt, which is longer than…",
		"05-[31mred ..%2F", "06-%25id", "07-Title of s06", "08-Fork (fork of 03)", "09-Fork (fork)", "10-Fork (fork)",
	}, list[:10])
	require.Equal(t, "50-Title of s49", list[49])
	for n, name := range list {
		require.Equal(t, fmt.Sprintf("../sessions/p/s%02d", n), link(t, m.path("recent", name)))
	}
	require.Equal(t, "%id\n", run(t, "jq", "-r", ".id", m.path("recent/06-%25id/header.json")))
	for n := range 25 { // an appended-to session is first at the next look
		time.Sleep(tick)
		a.add(fmt.Sprintf("s%02d", n%25), "{}\n")
		require.Equal(t, fmt.Sprintf("s%02d", n%25), filepath.Base(link(t, m.path("recent", recent()[0]))))
	}
	_, err := os.Lstat(m.path("recent", "02-Title of s00"))
	require.ErrorIs(t, err, os.ErrNotExist)
	time.Sleep(tick)
	a.replace("s24", sessionOf("s24", "/w", "renamed"))
	require.Equal(t, "01-renamed", recent()[0])
	require.NoError(t, os.Remove(a.path("s24.jsonl")))
	require.Equal(t, "01-Title of s23", recent()[0])
}

// TestIndex: index.jsonl is valid JSON with all keys in each line, newest first; one version a handle.
func TestIndex(t *testing.T) {
	a := newAgent(t)
	a.write("a", `{"type":"session","id":"a"}`+"\n")
	a.write("b", header("b"), entry(0, "e0", "", "hi"), entry(1, "e1", "e0", "ho"))
	a.write("c", sessionOf("\x00\"\\\u2028", "/\xED\xA0\xBD", "\x1b\n"))
	a.write("d", `{"type":"session","id":"d","cwd":"`+"\xff"+`","parentSession":"b","timestamp":"never"}`+"\n")
	a.write("not", "nothing\n")
	for n, name := range []string{"d", "c", "b", "a"} {
		a.age(name, n)
	}
	m := mountForTest(t, a.dir)
	index := m.path("index.jsonl")
	require.Equal(t, `["cwd","created","firstMessage","id","messageCount","modified","parentSession","path","size","title"]`+"\n",
		shell(t, `jq -c 'keys_unsorted - ["cwd"] | sort | ["cwd"] + .' "$1" | sort -u`, index))
	require.Equal(t, `["d",null,null,"b"]
["c","\u001b\n","2026",null]
["b",null,"2026",null]
["a",null,null,null]
`, shell(t, `jq -c '[(.path | ltrimstr("sessions/p/")), .title, (.created | if . then .[:4] else . end), .parentSession]' "$1"`, index))
	require.Equal(t, "2 hi /home/dev/project\n", shell(t, `jq -r 'select(.id == "b") | "\(.messageCount) \(.firstMessage) \(.cwd)"' "$1"`, index))
	shell(t, `set -e; exec 3< "$1"; first=$(head -c 10 <&3); echo '{}' >> "$2"
		[ "$( (printf %s "$first"; cat <&3) | jq -r .path | cut -c 12- | tr -d '\n')" = dcba ]
		for n in $(seq 20); do echo '{}' >> "$2"
			[ "$(stat -c %s "$1")" = "$(wc -c < "$1")" ]; [ "$(head -n 1 "$1" | jq -r '"\(.path) \(.size)"')" = "sessions/p/a $(stat -c %s "$2")" ]
		done`, index, a.path("a.jsonl"))
	require.Error(t, os.WriteFile(index, nil, 0o644))
	require.Equal(t, "400\n", run(t, "stat", "-c", "%a", index), "it shows what is in files of any mode, and refuses writing")
}

// TestIndexOfVeryManySessions: where the size of index.jsonl takes long to know, it is found by name and not listed, so that
// ls -l of the root looks at no session; tar leaves it out, and it is whole. archive/ is the same.
func TestIndexOfVeryManySessions(t *testing.T) {
	onceIsEnough(t)
	const listed = 10_000
	dir := scratch(t)
	one := filepath.Join(dir, "sessions/p0/0.jsonl")
	packed := filepath.Join(dir, "archive/sessions/p/0.jsonl.gz")
	for file, text := range map[string][]byte{one: []byte(sessionOf("s", "/w", "t")), packed: gzipped(sessionOf("s", "/w", "t"))} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	m := mountForTest(t, dir)
	add := func(n int) {
		p := filepath.Join(dir, "sessions", fmt.Sprintf("p%d", n%5))
		require.NoError(t, os.MkdirAll(p, 0o755))
		require.NoError(t, os.Link(one, filepath.Join(p, fmt.Sprintf("%d.jsonl", n))))
		require.NoError(t, os.Link(packed, filepath.Join(filepath.Dir(packed), fmt.Sprintf("%d.jsonl.gz", n))))
	}
	for n := 1; n < listed; n++ {
		add(n)
	}
	for _, at := range []string{"", "archive"} {
		require.Contains(t, names(t, m.path(at)), "index.jsonl", "in %q", at)
	}
	time.Sleep(tick)
	add(listed)
	require.NotContains(t, run(t, "ls", "-l", m.dir), "index.jsonl")
	require.NotContains(t, names(t, m.path("archive")), "index.jsonl")
	require.Equal(t, fmt.Sprintf("%d\n", listed+1), shell(t, `wc -l < "$1"`, m.path("index.jsonl")))
	info, err := os.Stat(m.path("index.jsonl"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d\n", info.Size()), shell(t, `wc -c < "$1"`, m.path("index.jsonl")))
}
