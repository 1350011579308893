package search

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents/agentstest"
	_ "sessionfs/sessioncore/agents/all" // reads the samples
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// sampleHomes returns a home for each sample of an agent, and those of the demo.
func sampleHomes(t *testing.T) (homes []*agentstest.Home) {
	for agent, place := range map[string]string{
		"claude":  "projects/-w/%s.jsonl",
		"codex":   "sessions/2026/08/03/rollout-2026-08-03T09-00-00-019c6f0e-0001-7000-8000-000000000001.jsonl",
		"gemini":  "tmp/garden/chats/session-%s.jsonl",
		"copilot": "session-state/019c6f0e-0001-7000-8000-000000000001/events.jsonl",
	} {
		samples, err := filepath.Glob(filepath.Join(sessiontest.TestData(t), "agents", agent, "*.jsonl"))
		require.NoError(t, err)
		for _, sample := range samples {
			text, err := os.ReadFile(sample)
			require.NoError(t, err)
			h := agentstest.New(t, agent)
			if agent == "gemini" {
				h.Put("tmp/garden/.project_root", "/srv/garden")
			}
			if strings.Contains(place, "%s") {
				h.Put(fmt.Sprintf(place, strings.TrimSuffix(filepath.Base(sample), ".jsonl")), string(text))
			} else {
				h.Put(place, string(text))
			}
			homes = append(homes, h)
		}
	}
	for _, agent := range []string{"claude", "codex"} {
		dir := filepath.Join(sessiontest.TestData(t), "demo-"+agent)
		copied := t.TempDir()
		require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
		homes = append(homes, agentstest.Open(t, agent, copied, sessiontest.OpenDir(t, copied)))
	}
	return homes
}

// namedIn adds the files that calls and results of a session name, and the directories above them.
func namedIn(t *testing.T, files storage.Files, name string, named map[string]bool) {
	all, err := NewTouched("/")
	require.NoError(t, err)
	text := storagetest.Read(t, files, name)
	header, err := sessioncore.ReadHeaderOf(t.Context(), files, name)
	if err != nil {
		return
	}
	in := all.pathsOf(header)
	add := func(name string) bool {
		for file := in.fileOf(name); file != "" && file != "/"; file = path.Dir(file) {
			named[file] = true
		}
		return false
	}
	add(in.cwd)
	for line := range strings.Lines(text) {
		entry := rawjson.Value(strings.TrimSpace(line))
		if !rawjson.IsValidObject(entry) {
			continue
		}
		m := message.Read(entry.Member("message"))
		message.EachCall(m[message.Content], func(b *message.Members) {
			tool, _ := b[message.Name].Text()
			message.EachPath(tool, b[message.Arguments], add)
		})
		message.EachResultPath(m[message.Details], add)
		message.EachNested(&m, func(call *message.Members) {
			tool, _ := call[message.Name].Text()
			message.EachPath(tool, call[message.Arguments], add)
		})
	}
}

// sessionsIn returns the files of sessions in all directories.
func sessionsIn(t *testing.T, files storage.Files) (names []string) {
	all, err := sessionFiles(t.Context(), files)
	require.NoError(t, err)
	for _, f := range all {
		names = append(names, f.name)
	}
	return names
}

// TestRawTouched: the bytes of an agent's file have all paths that the session's calls name, as a
// search that reads every entry finds them.
func TestRawTouched(t *testing.T) {
	t.Setenv("HOME", "/home/elsewhere")
	hits := 0
	named := 60 // files of each store that are searched for
	if sessiontest.UnderRace {
		named = 6
	}
	compare := func(files storage.Files) {
		all := map[string]bool{"/no/such/file": true, "/no/such": true}
		for _, name := range sessionsIn(t, files) {
			namedIn(t, files, name, all)
		}
		sorted := slices.Sorted(maps.Keys(all))
		for i := 0; i < len(sorted); i += 1 + len(sorted)/named {
			file := sorted[i]
			m, err := NewTouched(file)
			require.NoError(t, err)
			everywhere := *m
			everywhere.needle = nil
			want, err := New(SearchedSessions{Files: files}).Search(t.Context(), &everywhere)
			require.NoError(t, err)
			got, err := New(SearchedSessions{Files: files}).Search(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, string(want.Table()), string(got.Table()), file)
			hits += len(got.Hits)
		}
	}
	for _, h := range sampleHomes(t) {
		compare(h)
	}
	mem, _ := allStores(t)
	compare(mem)
	require.Greater(t, hits, named)
}

// TestTouchedWork: a session is converted only if the bytes of its file have the path in a call, not
// for another file of the same name or for words about it.
func TestTouchedWork(t *testing.T) {
	t.Setenv("HOME", "/home/elsewhere")
	record := func(n int, content string) string {
		return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"cwd":"/home/dev/p%d","sessionId":"s%d","version":"2.1.330","type":"assistant",`+
			`"message":{"id":"m","role":"assistant","content":[%s]},"uuid":"u%d","timestamp":"2026-03-01T10:00:00.000Z"}`, n, n, content, n)
	}
	h := agentstest.New(t, "claude")
	for n := range 40 {
		content := `{"type":"text","text":"see main.go, or \"/srv/x/main.go\", for more"}`
		switch n {
		case 10, 20, 30:
			content = `{"type":"tool_use","id":"t","name":"Write","input":{"file_path":"/srv/app/main.go","content":"x"}}`
		case 11:
			content = `{"type":"tool_use","id":"t","name":"Write","input":{"file_path":"/srv/app/c\u0061f\u00e9.go","content":"x"}}`
		case 12:
			content = `{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"main.go"}}`
		}
		h.Put(fmt.Sprintf("projects/-p%d/s%d.jsonl", n, n), strings.Repeat(record(n, content)+"\n", 50))
	}
	size := sessiontest.WorkOf(func() { h.Fresh().Read("-p5/s5.jsonl") }).Scanned
	for file, want := range map[string]struct{ hits, converted int64 }{
		"/srv/app/absent.go": {0, 0}, "/srv/app/main.go": {3, 3}, "/srv/app/café.go": {1, 1},
		"/home/dev/p12/main.go": {1, 1}, "/home/dev/p13/main.go": {0, 1}, // a header has the directory
	} {
		m, err := NewTouched(file)
		require.NoError(t, err)
		s := New(SearchedSessions{Files: h.Fresh()})
		work := sessiontest.WorkOf(func() {
			r, err := s.Search(t.Context(), m)
			require.NoError(t, err)
			require.EqualValues(t, want.hits, len(r.Hits), file)
		})
		require.LessOrEqual(t, work.Scanned, 5*want.converted*size, file)
		require.Equal(t, file != "/srv/app/absent.go", m.Occurs(), file)
	}
}

// TestTouchedOpens: a session's file is opened once if its bytes do not have the path.
func TestTouchedOpens(t *testing.T) {
	var opened atomic.Int64
	files := &watched{manyFiles(t, 50), func(string) error { opened.Add(1); return nil }}
	m, err := NewTouched("/srv/absent.go")
	require.NoError(t, err)
	r, err := New(SearchedSessions{Files: files}).Search(t.Context(), m)
	require.NoError(t, err)
	require.Empty(t, r.Hits)
	require.EqualValues(t, 50, opened.Load())
	require.Equal(t, sessioncore.FileEnding, path.Ext(sessionsIn(t, files)[0]))
}

// TestPathsInRaw: each way in which the bytes of an agent's file can have a path, and a directory.
func TestPathsInRaw(t *testing.T) {
	t.Setenv("HOME", "/home/elsewhere")
	header := func() (rawjson.Value, error) { return rawjson.Value(`{"type":"session","cwd":"/home/dev"}`), nil }
	for file, texts := range map[string]map[string]bool{
		"/home/dev/main.go": {
			`"/home/dev/main.go"`: true, `"main.go:3"`: true, `"./main.go"`: true, `"../dev/main.go"`: true, `"sub/../main.go"`: true, `"~/main.go"`: true,
			`"@/home/dev/main.go"`: true, `"@~/main.go"`: true, `"file:///home/dev/main.go"`: true, `"file:///home%2Fdev/main.go"`: true,
			`"x.go; main.go;y"`: true, `"{\"path\":\"main.go\"}"`: true, `"{\"args\":\"{\\\"path\\\":\\\"\\\\u002fhome/dev/main.go\\\"}\"}"`: true,
			`"*** Begin Patch\n*** Update File: main.go\n@@"`: true, `"{\"input\":\"*** Begin Patch\\n*** Update File: below/main.go\\n@@\"}"`: true,
			`"[main.go#1A2B]\nMV x"`: true, `"C:\\x\\main.go"`: false, `"see main.go"`: false, `"domain.go"`: false, `"/etc/main.go"`: false,
			`"see /home/dev/main.go for more"`: false, `"x/main.go"`: false, `"https://home/dev/main.go"`: false,
		},
		`/C:/Dev/Qux`: {
			`"c:\\dev\\qUX"`: true, `"{\"path\":\"C:\\\\Dev\\\\Qux\\\\b\"}"`: true, `"D:\\Dev\\Qux"`: false,
		},
		"/srv/qux": {
			`"cwd":"/srv/qux/below"`: true, `"<env>\n  <cwd>/srv/qux</cwd>\n</env>"`: true, `"In the directory: /srv/qux/x\nMore"`: true,
			`"**Directories:**\n  - /srv/qux\n"`: true, `"/srv/quxlike"`: false, `"in /srv/qux now"`: false,
		},
		"/srv/we\"ird": {`"anything"`: true},
		"/srv/a;b/c":   {`"anything"`: true},
	} {
		m, err := NewTouched(file)
		require.NoError(t, err)
		for text, want := range texts {
			n := m.inRaw("", header)
			if n == nil {
				require.True(t, want, text)
				continue
			}
			var s scanner
			found, err := s.find(t.Context(), strings.NewReader(text+"\n"), int64(len(text)+1), n)
			require.NoError(t, err)
			require.Equal(t, want, len(found) > 0, "%s in %s", file, text)
		}
	}
	m, err := NewTouched("/srv/qux")
	require.NoError(t, err)
	require.Nil(t, m.inRaw("/srv/qux/below", header), "the directory is in no record")
	require.NotNil(t, m.inRaw("/srv/other", header))
}
