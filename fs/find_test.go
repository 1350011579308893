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
	return fmt.Sprintf(`{"type":"session","version":3,"id":%s,"timestamp":"2026-02-16T10:20:30.000Z","cwd":%s,"title":%s}`, quoted(id), quoted(cwd),
		quoted(title)) + "\n"
}

// age sets when a session of sessions/p was modified: that many minutes ago.
func (a agent) age(name string, minutes int) {
	at := time.Now().Add(-time.Duration(minutes) * time.Minute)
	require.NoError(a.t, os.Chtimes(a.path(name+".jsonl"), at, at))
}

// TestSessionsAreFound: the lists lead to sessions, by the names that packages listing and layout test, and show at once what
// has changed.
func TestSessionsAreFound(t *testing.T) {
	a := newAgent(t)
	const first, second = "2026-01-01T00-00-00-000Z_0197aaaa", "2026-01-02T00-00-00-000Z_0197bbbb"
	a.write(first, sessionOf("0197aaaa", "/w", "First"))
	a.write(second, sessionOf("0197bbbb", "/w", "Tides"))
	a.write("twin", sessionOf("0197bbbb", "/w/sub", "Tides"))
	a.write("fork", strings.Replace(sessionOf("fork", "/w", "Tides"), `"cwd"`, `"parentSession":"/x/sessions/p/`+second+`.jsonl","cwd"`, 1))
	a.write("odd", sessionOf("../../etc/passwd", "/\xED\xA0\xBD", "\x1b[31mred\x07 \u0085../"))
	a.write("bare", `{"type":"session","id":"%id"}`+"\n")
	a.write("asked", header("asked"), entry(0, "e0", "", "The first prompt, which is longer than forty characters"))
	a.write("not", "no session\n")
	order := []string{second, first, "twin", "fork", "odd", "bare", "asked"}
	for i, name := range order {
		a.age(name, i)
	}
	m := mountForTest(t, a.dir)
	leads := func(path, want string) {
		t.Helper()
		require.Equal(t, want, strings.TrimSuffix(filepath.Base(link(t, m.path(path))), ".jsonl"), path)
		require.FileExists(t, m.path(path, "header.json"))
	}
	recent := func() []string { return names(t, m.path("recent")) }

	require.Equal(t, []string{"%25id", "%2E.%2F..%2Fetc%2Fpasswd", "0197aaaa", "0197bbbb", "asked", "fork"}, names(t, m.path("by-id")))
	for key, want := range map[string]string{"0197AA": first, "0197": second, "2026-01-01t": first, "Tw": "twin", "odd": "odd",
		"%2E.%2F..%2Fetc%2Fpasswd": "odd"} {
		leads("by-id/"+key, want)
	}
	require.Equal(t, []string{
		"01-Tides", "02-First", "03-Tides", "04-Tides (fork of 01)", "05-[31mred ..%2F", "06-%25id", "07-The first prompt, which is longer than…",
	}, recent())
	for i, name := range recent() {
		leads("recent/"+name, order[i])
	}
	require.Equal(t, []string{"2026-02-16T10-20-First", "2026-02-16T10-20-Tides", "2026-02-16T10-20-Tides (fork)", "latest", "sub"},
		names(t, m.path("by-cwd/w")))
	leads("by-cwd/w/latest", second)
	require.Equal(t, []string{"2026-02-16"}, names(t, m.path("by-date")))
	day := names(t, m.path("by-date/2026-02-16"))
	require.Len(t, day, 7, "two of the same minute and title have names of their own: %q", day)
	for _, name := range day {
		require.FileExists(t, m.path("by-date/2026-02-16", name, "header.json"))
	}

	for n := range 20 { // an appended-to session is first at the next look
		time.Sleep(tick)
		name := []string{first, "twin", second}[n%3]
		a.add(name, "{}\n")
		leads("recent/"+recent()[0], name)
		leads("by-id/"+map[bool]string{true: "0197a", false: "0197bbbb"}[name == first], name)
	}
	leads("by-id/0197", "twin")
	time.Sleep(tick)
	a.write(first, sessionOf("0197aaaa", "/moved", "Renamed"))
	leads("by-cwd/moved/latest", first)
	require.Equal(t, "01-Renamed", recent()[0])
	shell(t, `echo 'Another title' > "$1/title"; cat "$1/title"`, m.session(second))
	require.Contains(t, names(t, m.path("by-cwd/w")), "2026-02-16T10-20-Another title")
	require.NoError(t, os.Remove(a.path("odd.jsonl")))
	for _, gone := range []string{"by-id/odd", "by-id/zzz", "recent/02-First", "by-cwd/w/2026-02-16T10-20-First"} {
		absent(t, m.path(gone))
	}
}

// link reads a link, whose size is that of its target.
func link(t testing.TB, path string) string {
	target := readLink(t, path)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, len(target), int(info.Size()), path)
	require.False(t, filepath.IsAbs(target))
	return target
}

// TestIndex: index.jsonl is valid JSON with all keys in each line, newest first; one version a handle.
func TestIndex(t *testing.T) {
	a := newAgent(t)
	a.write("a", `{"type":"session","id":"a"}`+"\n")
	a.write("b", header("b"), entry(0, "e0", "", "hi"), entry(1, "e1", "e0", "ho"))
	a.write("c", sessionOf("\x00\"\\\u2028", "/\xED\xA0\xBD", "\x1b\n"))
	for n, name := range []string{"c", "b", "a"} {
		a.age(name, n)
	}
	m := mountForTest(t, a.dir)
	index := m.path("index.jsonl")
	require.Equal(t, `["cwd","created","firstMessage","id","messageCount","modified","parentSession","path","size","title"]`+"\n",
		shell(t, `jq -c 'keys_unsorted - ["cwd"] | sort | ["cwd"] + .' "$1" | sort -u`, index))
	require.Equal(t, "2 hi /home/dev/project\n", shell(t, `jq -r 'select(.id == "b") | "\(.messageCount) \(.firstMessage) \(.cwd)"' "$1"`, index))
	shell(t, `set -e; exec 3< "$1"; first=$(head -c 10 <&3); echo '{}' >> "$2"
		[ "$( (printf %s "$first"; cat <&3) | jq -r .path | cut -c 12- | tr -d '\n')" = cba ]
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
