package fs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
	"sessionfs/testdata"
)

// The mount of other agents' sessions, and of those of all agents.

// The sessions of the demo.
const (
	claudeDemo = "-home-dev-tidetable/7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17"
	codexDemo  = "2026-05-12/rollout-2026-05-12T13-40-05-019e1c4d-7a30-7c52-b1d8-2f60a9e4c713"
)

// TestForeignMount: what a mount of another agent shows, and that all of it is read-only, with the way out.
func TestForeignMount(t *testing.T) {
	for _, c := range []struct {
		name, source, session, raw string
		title, leaf, file, said    string
		tips                       int
	}{
		{
			"claude", unpack(t, testdata.DemoOf("claude")), claudeDemo, "projects/" + claudeDemo + ".jsonl",
			"Calendar times in UTC", "a32dc482-96ce-4859-942a-f46d1c8d5358", "/home/dev/tidetable/internal/ical/write.go", "TZID", 2,
		},
		{
			"codex", unpack(t, testdata.DemoOf("codex")), codexDemo, "sessions/2026/05/12/" + filepath.Base(codexDemo) + ".jsonl",
			"Stations without a datum", "l12", "/home/dev/tidetable/internal/table/table.go", "Ilfracombe", 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mountForTest(t, c.source)
			s := func(parts ...string) string { return m.path(append([]string{"sessions", c.session}, parts...)...) }
			require.Equal(t, string(read(t, filepath.Join(c.source, c.raw))), string(read(t, m.path("sessions", c.session+".jsonl"))), "byte for byte")
			require.Equal(t, c.title+"\n", string(read(t, s("title"))))
			leaf := readLink(t, s("leaf"))
			require.Equal(t, "entries/"+c.leaf+".json", leaf)
			for _, name := range names(t, s("entries")) {
				var e struct {
					ID     string
					Origin struct{ Line int }
				}
				require.NoError(t, json.Unmarshal(read(t, s("entries", name)), &e), name)
				require.Equal(t, strings.TrimSuffix(name, ".json"), e.ID)
				require.NotZero(t, e.Origin.Line, name)
			}
			require.Len(t, names(t, s("branches")), c.tips+2)
			require.Equal(t, c.tips, strings.Count(string(read(t, s("branches.tsv"))), "\n")-1)
			require.Empty(t, read(t, s("problems.jsonl")))
			require.Contains(t, string(read(t, s("transcript.md"))), c.said)
			require.True(t, json.Valid(read(t, s("context.json"))))
			require.Contains(t, string(read(t, s("usage.json"))), `"totalTokens"`)
			require.Contains(t, string(read(t, m.path("index.jsonl"))), c.title)
			require.Contains(t, string(read(t, m.path("usage.jsonl"))), "/home/dev/tidetable")
			require.Contains(t, string(read(t, m.path("history/prompts.jsonl"))),
				`"session_id":"`+filepath.Base(c.session)[max(0, len(filepath.Base(c.session))-36):])
			require.Equal(t, []string{"01-" + c.title}, names(t, m.path("recent")))
			id := filepath.Base(c.session)
			for _, link := range []string{"recent/01-" + c.title, "by-id/" + id[len(id)-36:], "by-cwd/home/dev/tidetable/latest"} {
				to, err := filepath.EvalSymlinks(m.path(link))
				require.NoError(t, err)
				require.Equal(t, s(), to)
			}
			require.Contains(t, string(read(t, m.path("search", c.said, "results.tsv"))), "sessions/"+c.session+"/entries/")
			require.Len(t, names(t, m.path("search", c.said, "sessions")), 1)
			require.Equal(t, 1, strings.Count(string(read(t, m.path("search", "nowhere at all", "results.tsv"))), "\n"))
			require.Contains(t, string(read(t, m.path("by-file", c.file, "results.tsv"))), "sessions/"+c.session+"/entries/")

			before := state(t, c.source)
			for _, name := range []string{"append", "labels", "title", "cwd", "fork"} {
				require.ErrorIs(t, os.WriteFile(s(name), []byte("x\n"), 0), syscall.EROFS, name)
				require.Contains(t, string(read(t, s("last-error"))), name+": read-only")
				require.Contains(t, string(read(t, s("last-error"))), "sessionfs import makes an omp session of it")
			}
			require.ErrorIs(t, os.Symlink("entries/"+c.leaf+".json", s("temporary")), syscall.EROFS)
			require.ErrorIs(t, os.Remove(s("leaf")), syscall.EROFS)
			require.Contains(t, string(read(t, s("last-error"))), "sessionfs import")
			for what, err := range map[string]error{
				"new-session":     os.WriteFile(m.path("new-session"), []byte("/tmp\n"), 0),
				"sessions/x":      os.Mkdir(m.path("sessions", "x"), 0o700),
				"recent/x":        os.WriteFile(m.path("recent", "x"), nil, 0o600),
				"sessions/" + "y": os.Rename(m.path("sessions", c.session+".jsonl"), m.path("sessions", "y")),
			} {
				require.ErrorIs(t, err, syscall.EROFS, what)
			}
			require.Contains(t, string(read(t, m.path("last-error"))), "sessionfs import makes an omp session of it")
			require.Error(t, os.WriteFile(m.path("sessions", c.session+".jsonl"), []byte("x"), 0)) // nobody may; root is EROFS
			require.Equal(t, before, state(t, c.source))
		})
	}
}

// state is the content of all files below a directory.
func state(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		fmt.Fprintln(&all, name)
		if err == nil && d.Type().IsRegular() {
			all.Write(read(t, name))
		}
		return err
	}))
	return all.String()
}

// allAgents are directories of all agents, and the option that mounts them.
func allAgents(t *testing.T) (dirs map[string]string, all mountOption) {
	dirs = map[string]string{
		"omp": demo(t), "pi": unpack(t, os.DirFS("../testdata/pi")),
		"claude": unpack(t, testdata.DemoOf("claude")), "codex": unpack(t, testdata.DemoOf("codex")),
	}
	return dirs, func(c *mountConfig) {
		for _, name := range []string{"omp", "pi", "claude", "codex"} {
			c.options.Agents = append(c.options.Agents, mountopts.AgentDir{Name: name, Source: dirs[name], SourceAs: dirs[name]})
		}
	}
}

// TestAllAgents: the sessions of all agents in one mount, each as in a mount of its own, with the ways to find them over all.
func TestAllAgents(t *testing.T) {
	dirs, all := allAgents(t)
	require.NoError(t, os.WriteFile(filepath.Join(dirs["pi"], "trust.json"), nil, 0o600)) // else it is omp's by its names
	m := mountForTest(t, mountopts.All, all)
	require.Equal(t, []string{"omp", "pi", "claude", "codex"}, names(t, m.path("sessions")))
	agents := map[string]int{}
	for line := range strings.Lines(string(read(t, m.path("index.jsonl")))) {
		var s struct{ Agent, Path, ID string }
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		require.True(t, strings.HasPrefix(s.Path, "sessions/"+s.Agent+"/"), s.Path)
		agents[s.Agent]++
		to, err := filepath.EvalSymlinks(m.path("by-id", s.ID))
		require.NoError(t, err)
		require.Equal(t, m.path(s.Path), to)
		require.True(t, json.Valid(read(t, filepath.Join(to, "context.json"))), s.Path)
	}
	require.Equal(t, map[string]int{"omp": 5, "pi": 2, "claude": 1, "codex": 1}, agents)
	require.Len(t, names(t, m.path("recent")), 9)
	require.Len(t, names(t, m.path("by-cwd/home/dev/tidetable")), 7)
	require.Equal(t, "9\n", shell(t, `cd "$1" && for s in *-*/*-*; do [ -e "$s/title" ] && echo; done | wc -l`, m.path("by-date")))
	for query, agent := range map[string]string{"TZID": "claude", "Ilfracombe": "codex", `"new moon"`: "pi", "april.csv": "omp"} {
		query += " agent:" + agent
		table := string(read(t, m.path("search", query, "results.tsv")))
		require.Contains(t, table, "\tsessions/"+agent+"/", query)
		for _, name := range names(t, m.path("search", query, "entries")) {
			_, err := os.Stat(m.path("search", query, "entries", name))
			require.NoError(t, err, "%s %s", query, name)
		}
	}
	require.Equal(t, "claude\nomp\npi\n",
		shell(t, `cd "$1" && tail -n +2 lost.tsv | cut -f 4 | while read -r p; do [ -e "$p/path" ] && echo "$p"; done | cut -d / -f 2 | sort -u`, m.dir))
	costs := string(read(t, m.path("usage.jsonl")))
	require.Contains(t, costs, "openai-codex/gpt-5.3-codex")
	require.Contains(t, costs, "/home/dev/almanac")
	require.Contains(t, costs, "claude-opus-4-5")
	for _, agent := range []string{"omp", "claude", "codex"} {
		require.Contains(t, string(read(t, m.path("history/prompts.jsonl"))), `"agent":"`+agent+`"`)
	}
	require.Contains(t, string(read(t, m.path("history/search/datum"))), `"agent":"codex"`)

	// New sessions, of omp where nothing else is said.
	for _, c := range []struct{ line, place string }{
		{"/tmp", "sessions/omp/"},
		{`{"cwd":"/tmp","agent":"pi"}`, "sessions/pi/--tmp--/"},
		{`{"cwd":"/tmp","agent":"omp"}`, "sessions/omp/"},
	} {
		f, err := os.OpenFile(m.path("new-session"), os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteString(c.line + "\n")
		require.NoError(t, err, c.line)
		answer := make([]byte, 4096)
		n, err := f.Read(answer)
		require.NoError(t, err)
		place := strings.TrimSpace(string(answer[:n]))
		require.True(t, strings.HasPrefix(place, c.place), place)
		require.NoError(t, put(m.path(place, "append"), `{"type":"message","message":{"role":"user","content":"begin"}}`+"\n"))
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		agent, file, _ := strings.Cut(strings.TrimPrefix(place, "sessions/"), "/")
		require.Contains(t, string(read(t, filepath.Join(dirs[agent], "sessions", file+".jsonl"))), "begin")
		require.Contains(t, string(read(t, m.path("index.jsonl"))), place)
	}
	for line, want := range map[string]syscall.Errno{
		`{"cwd":"/tmp","agent":"claude"}`: syscall.EROFS, `{"cwd":"/tmp","agent":"zed"}`: syscall.EINVAL,
	} {
		require.ErrorIs(t, os.WriteFile(m.path("new-session"), []byte(line+"\n"), 0), want)
		require.Contains(t, string(read(t, m.path("last-error"))), map[syscall.Errno]string{syscall.EROFS: "sessionfs import", syscall.EINVAL: "omp, pi"}[want])
	}

	// What is written goes to the session of its agent alone, with its locks.
	omp := "--home-dev-tidetable--/2026-01-04T20-41-17-660Z_5f79e710-6e4b-4149-ba93-d2c9c8d0e747"
	in := func(name string) string { return m.path("sessions/omp", omp, name) }
	require.NoError(t, put(in("append"), `{"type":"message","message":{"role":"user","content":"one more"}}`+"\n"))
	require.NoError(t, put(in("title"), "A title\n"))
	require.NoError(t, put(in("labels"), filepath.Base(strings.TrimSuffix(readLink(t, in("leaf")), ".json"))+" here\n"))
	require.Contains(t, names(t, in("by-label")), "here")
	require.Contains(t, string(read(t, filepath.Join(dirs["omp"], "sessions", omp+".jsonl"))), "one more")
	require.Contains(t, names(t, m.path("recent")), "01-A title")
	first := names(t, in("entries"))[0]
	require.NoError(t, os.Symlink("entries/"+first, in("temporary")))
	require.NoError(t, os.Rename(in("temporary"), in("leaf")))
	require.Equal(t, "entries/"+first, readLink(t, in("leaf")))
	held, err := os.OpenFile(filepath.Join(dirs["omp"], "sessions", omp+".jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	require.ErrorIs(t, os.WriteFile(in("append"), []byte(`{"type":"custom","customType":"x"}`+"\n"), 0), syscall.EBUSY, "as a live client holds it")
	require.NoError(t, held.Close())

	require.ErrorIs(t, os.WriteFile(m.path("sessions/claude", claudeDemo, "title"), []byte("x\n"), 0), syscall.EROFS)
	require.ErrorIs(t, os.Mkdir(m.path("sessions/claude/x"), 0o700), syscall.EROFS)
	require.ErrorIs(t, os.Mkdir(m.path("sessions/omp/x"), 0o700), syscall.EPERM)
	require.ErrorIs(t, os.Mkdir(m.path("sessions/x"), 0o700), syscall.EPERM)
	require.Contains(t, string(read(t, m.path("last-error"))), "sessions/x")
}

// TestForeignOpens: of the directories of other agents nothing is opened but sessions and what is known of them.
func TestForeignOpens(t *testing.T) {
	dirs, all := allAgents(t)
	for _, secret := range []string{
		"claude/.credentials.json", "claude/settings.json", "claude/plugins/config.json", "claude/todos/a.json",
		"claude/projects/-home-dev-tidetable/memory/MEMORY.md",
		"codex/auth.json", "codex/config.toml", "codex/state_5.sqlite", "codex/log/codex-tui.log", "codex/sessions/2026/05/12/notes.txt",
		"codex/sessions/2026/secret.jsonl",
	} {
		agent, name, _ := strings.Cut(secret, "/")
		file := filepath.Join(dirs[agent], name)
		writeFile(t, file, "secret")
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(watch)
	for _, agent := range []string{"claude", "codex"} {
		require.NoError(t, filepath.WalkDir(dirs[agent], func(name string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_, err = unix.InotifyAddWatch(watch, name, unix.IN_OPEN)
			}
			return err
		}))
	}
	opened(t, watch) // by the walk
	m := mountForTest(t, mountopts.All, all)
	shown := 0
	require.NoError(t, filepath.WalkDir(m.dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			shown++
			if _, err := os.ReadFile(name); err != nil && !errors.Is(err, syscall.EACCES) {
				return err
			}
		}
		return err
	}))
	require.Greater(t, shown, 100)
	require.NotContains(t, string(read(t, m.path("search/secret/results.tsv"))), "\tsessions/c")
	read(t, m.path("usage.jsonl"))
	read(t, m.path("history/prompts.jsonl"))
	found := opened(t, watch)
	require.Contains(t, found, filepath.Base(codexDemo)+".jsonl", "the test sees what is opened")
	for _, name := range found {
		fine := name == "history.jsonl" || name == "session_index.jsonl" || name == filepath.Base(codexDemo)+".jsonl" ||
			name == filepath.Base(claudeDemo)+".jsonl"
		require.True(t, fine, "%s was opened", name)
	}
}

// opened returns the names of the files that were opened, sorted.
func opened(t *testing.T, watch int) (all []string) {
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Read(watch, buf)
		if errors.Is(err, unix.EAGAIN) || n <= 0 {
			slices.Sort(all)
			return slices.Compact(all)
		}
		require.NoError(t, err)
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			mask := uint32(b[4]) | uint32(b[5])<<8 | uint32(b[6])<<16 | uint32(b[7])<<24
			size := int(uint32(b[12]) | uint32(b[13])<<8)
			require.Zero(t, mask&unix.IN_Q_OVERFLOW)
			if mask&unix.IN_ISDIR == 0 {
				all = append(all, strings.TrimRight(string(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size]), "\x00"))
			}
			b = b[unix.SizeofInotifyEvent+size:]
		}
	}
}

// TestForeignLive: while an agent writes its session, also a record in two writes, no reader sees half an entry or a wrong one,
// and each new one within a second.
func TestForeignLive(t *testing.T) {
	const records = 40
	for _, c := range []struct {
		name, source, session, file string
		record                      func(n int) (id, text, line string)
	}{
		{"claude", unpack(t, testdata.DemoOf("claude")), claudeDemo, "projects/" + claudeDemo + ".jsonl", func(n int) (id, text, line string) {
			id, text = fmt.Sprintf("0f%06d-1111-4222-8333-444455556666", n), fmt.Sprintf("claude says %d", n)
			parent := fmt.Sprintf("0f%06d-1111-4222-8333-444455556666", n-1)
			if n == 0 {
				parent = "a32dc482-96ce-4859-942a-f46d1c8d5358"
			}
			return id, text, fmt.Sprintf(`{"parentUuid":%q,"isSidechain":false,"cwd":"/home/dev/tidetable","sessionId":"s","type":"user","uuid":%q,`+
				`"timestamp":"2026-05-12T10:00:%02d.000Z","message":{"role":"user","content":%q}}`, parent, id, n, text)
		}},
		{"codex", unpack(t, testdata.DemoOf("codex")), codexDemo, "sessions/2026/05/12/" + filepath.Base(codexDemo) + ".jsonl",
			func(n int) (id, text, line string) {
				id, text = fmt.Sprintf("l%d", 14+n), fmt.Sprintf("codex says %d", n)
				return id, text, fmt.Sprintf(`{"timestamp":"2026-05-12T14:00:%02d.000Z","type":"response_item",`+
					`"payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, n, text)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := mountForTest(t, c.source)
			s := func(parts ...string) string { return m.path(append([]string{"sessions", c.session}, parts...)...) }
			file := filepath.Join(c.source, c.file)
			tail := follow(t, "tail -f", s("transcript.md"))
			known := len(names(t, s("entries")))
			for n := range records {
				id, text, line := c.record(n)
				cut := len(line) * n / records
				if n%2 == 0 {
					grow(t, file, line[:cut])
					require.Len(t, names(t, s("entries")), known, "half a record is no entry")
					require.True(t, json.Valid(read(t, s("context.json"))))
				} else {
					cut = 0
				}
				grow(t, file, line[cut:], "\n")
				wrote := time.Now()
				listed := names(t, s("entries"))
				require.Contains(t, listed, id+".json", "after %s", time.Since(wrote))
				require.Less(t, time.Since(wrote), time.Second)
				known = len(listed)
				var e struct {
					ID      string
					Message struct{ Content json.RawMessage }
				}
				require.NoError(t, json.Unmarshal(read(t, s("entries", id+".json")), &e))
				require.Equal(t, id, e.ID)
				require.Contains(t, string(e.Message.Content), `"`+text+`"`)
				require.Equal(t, "entries/"+id+".json", readLink(t, s("leaf")))
				context := read(t, s("context.json"))
				require.True(t, json.Valid(context))
				require.Contains(t, string(context), `"`+text+`"`)
			}
			tail.prints(string(read(t, s("transcript.md"))))
			require.Empty(t, read(t, s("problems.jsonl")))
			for n := range records {
				_, text, _ := c.record(n)
				require.Equal(t, 1, strings.Count(tail.output(), text+"\n"), text)
			}
		})
	}
}

// TestForeignHostile: no file of another agent crashes or hangs the mount, and problems.jsonl says what is wrong.
func TestForeignHostile(t *testing.T) {
	source := unpack(t, testdata.DemoOf("claude"))
	good := string(read(t, filepath.Join(source, "projects", claudeDemo+".jsonl")))
	long := 100 << 20
	if !full() {
		long = 9 << 20
	}
	rec := func(id, parent string) string {
		return fmt.Sprintf(`{"parentUuid":%q,"isSidechain":false,"sessionId":"s","type":"user","uuid":%q,"timestamp":"2026-05-12T10:00:00.000Z",`+
			`"message":{"role":"user","content":"said %s"}}`, parent, id, id) + "\n"
	}
	for name, content := range map[string]string{
		"garbage": good + "\x00\xff\xfe{{{]\n\x1b[2J\n" + rec("after", "none"),
		"torn":    good + rec("torn", "x")[:50],
		"cycle":   good + rec("c1", "c2") + rec("c2", "c1") + rec("self", "self"),
		"long":    good + strings.Replace(rec("long", "x"), "said", "said "+strings.Repeat("x", long), 1) + rec("after", "long"),
		"nothing": "", "noise": "\x7fELF\x02\x01\x01" + strings.Repeat("\x00\xa5", 4096),
		"array": "[1,2,3]\n\"text\"\nnull\n",
		"wrong": `{"type":"user","uuid":5,"message":[],"timestamp":{}}` + "\n" +
			`{"type":"assistant","uuid":"a","message":{"id":"m","content":{"type":"text"}}}` + "\n",
		"nested": `{"type":"user","uuid":"n","message":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + "}\n" + good,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(source, "projects/-home-dev-tidetable", name+".jsonl"), []byte(content), 0o600))
	}
	m := mountForTest(t, source)
	for _, name := range []string{"garbage", "torn", "cycle", "long", "wrong", "nested"} {
		in := func(file string) string { return m.path("sessions/-home-dev-tidetable", name, file) }
		if _, err := os.Stat(in("")); err != nil {
			require.Equal(t, "wrong", name, "%v", err)
			continue
		}
		for _, file := range []string{"entries", "tree", "branches", "by-label", "children"} {
			names(t, in(file))
		}
		for _, file := range []string{"context.json", "transcript.md", "usage.json", "problems.jsonl", "branches.tsv", "title", "header.json"} {
			if name != "long" || file != "transcript.md" { // which takes as long for a session of any agent
				read(t, in(file))
			}
		}
		require.Equal(t, name == "garbage" || name == "torn", strings.Contains(string(read(t, in("problems.jsonl"))), "line "), "%s: %s", name,
			read(t, in("problems.jsonl")))
	}
	require.Contains(t, names(t, m.path("sessions/-home-dev-tidetable/garbage/entries")), "after.json")
	require.Contains(t, names(t, m.path("sessions/-home-dev-tidetable/long/entries")), "after.json")
	require.NotEmpty(t, read(t, m.path("index.jsonl")))
	require.Contains(t, string(read(t, m.path("search/TZID/results.tsv"))), "/entries/")
	require.Contains(t, string(read(t, m.path("sessions/-home-dev-tidetable/garbage/search/TZID/results.tsv"))), "/garbage/")
	require.NotEmpty(t, read(t, m.path("usage.jsonl")))
}
