package search

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/memory"
)

// slowTouch is an entry and the paths that its calls name, as the slow reader has it.
type slowTouch struct {
	name, prompt string
	paths        []string
}

// slowTouches reads all sessions, and returns those that the slow reader can read, by file.
func slowTouches(t *testing.T, files *memory.Storage, names []string) map[string][]slowTouch {
	all := map[string][]slowTouch{}
	for _, file := range names {
		session := sessioncore.NewStore(files).Session(file)
		snap, err := session.Acquire(context.Background())
		if err != nil {
			continue
		}
		header, _, err := snap.ReadHeader()
		require.NoError(t, err)
		var h object
		require.NoError(t, json.Unmarshal(header, &h))
		cwd, _ := h["cwd"].(string)
		for n := range snap.Len() {
			e := sessioncore.Entry(n)
			if snap.Kind(e) != sessioncore.TypeMessage {
				continue
			}
			text, err := snap.EntryText(e)
			require.NoError(t, err)
			var v object
			if json.Unmarshal(snap.Message(e, text), &v) != nil {
				continue // without a message, or with one that is no object
			}
			touch := slowTouch{name: snap.Name(e)}
			touch.content(v["content"], cwd)
			if len(touch.paths) == 0 {
				continue
			}
			for _, before := range snap.Path(e) {
				if snap.Role(before) == sessioncore.RoleUser {
					touch.prompt = snap.Name(before)
				}
			}
			all[file] = append(all[file], touch)
		}
		snap.Release()
	}
	return all
}

func (s *slowTouch) content(v any, cwd string) {
	switch v := v.(type) {
	case []any:
		for _, b := range v {
			if b, ok := b.(object); ok {
				s.content(b, cwd)
			}
		}
	case object:
		switch v["type"] {
		case "toolCall", "tool_call", "toolUse", "tool_use", "functionCall", "function_call", "serverToolUse", "server_tool_use":
			s.arguments(get(v, "arguments", "input", "args", "parameters"), cwd)
		}
		if inner, ok := v["block"].(object); ok {
			s.content(inner, cwd)
		}
	}
}

func (s *slowTouch) arguments(v any, cwd string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			s.arguments(e, cwd)
		}
	case object:
		for key, m := range v {
			if slices.Contains([]string{"path", "file_path", "filePath", "paths", "file", "files"}, key) {
				s.add(m, cwd)
			}
			s.arguments(m, cwd)
		}
	}
}

func (s *slowTouch) add(v any, cwd string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			s.add(e, cwd)
		}
	case string:
		if strings.Contains(v, "://") {
			return
		}
		for _, name := range []string{v, strings.Split(v, ":")[0]} {
			if name != "" && !path.IsAbs(name) && path.IsAbs(cwd) {
				name = cwd + "/" + name
			}
			if path.IsAbs(name) {
				s.paths = append(s.paths, path.Clean(name))
			}
		}
	}
}

// TestTouchedAgreesWithSlowReader: what was done with any file that a session names, and with the directories above it.
func TestTouchedAgreesWithSlowReader(t *testing.T) {
	files, entries := allStores(t)
	readable := map[string]bool{}
	for _, e := range entries {
		readable[e.file] = true
	}
	names := slices.Sorted(maps.Keys(readable))
	touches := slowTouches(t, files, names)
	targets := map[string]bool{"/": true, "/none": true}
	for _, of := range touches {
		for _, touch := range of {
			for _, name := range touch.paths {
				for ; name != "/"; name = path.Dir(name) {
					targets[name] = true
				}
			}
		}
	}
	require.Greater(t, len(targets), 20)
	searcher := New(Sessions{Files: files})
	every := 4
	if sessiontest.UnderRace {
		every = 300
	}
	for i, target := range slices.Sorted(maps.Keys(targets)) {
		if i%every != 0 {
			continue
		}
		m, err := NewTouched(target)
		require.NoError(t, err)
		result, err := searcher.Search(context.Background(), m)
		require.NoError(t, err)
		var want, got []string
		for file, of := range touches {
			for _, touch := range of {
				if slices.ContainsFunc(touch.paths, func(name string) bool {
					return name == target || strings.HasPrefix(name, strings.TrimSuffix(target, "/")+"/")
				}) {
					want = append(want, file+" "+touch.name+" "+touch.prompt)
				}
			}
		}
		for _, h := range result.Hits {
			got = append(got, h.File+" "+h.Entry+" "+h.Prompt)
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got, target)
	}
}

// TestTouched: each way in which a call can name a file.
func TestTouched(t *testing.T) {
	const cwd = "/home/dev"
	for _, c := range []struct {
		call string // block of an assistant's message
		path string
		line string // "" if it is not a hit
	}{
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/home/dev/main.go", "edit main.go"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/home/dev", "edit main.go"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/", "edit main.go"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/home/dev/main", ""},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"main.go"}}`, "/home/de", ""},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"ma\u0069n.go"}}`, "/home/dev/main.go", "edit main.go"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"../x/./y"}}`, "/home/x/", "edit ../x/./y"},
		{`{"type":"toolCall","name":"read","arguments":{"path":"a.go:3-9"}}`, "/home/dev/a.go", "read a.go:3-9"},
		{`{"type":"toolCall","name":"read","arguments":{"path":"a:b"}}`, "/home/dev/a:b", "read a:b"},
		{`{"type":"toolCall","name":"read","arguments":{"path":"https://a/b"}}`, "/home/dev", ""},
		{`{"type":"tool_use","name":"Write","input":{"file_path":"/etc/x \"y\""}}`, `/etc/x "y"`, `Write /etc/x "y"`},
		{`{"type":"toolCall","name":"grep","arguments":{"paths":["/a","/b/c"]}}`, "/b", "grep /b/c"},
		{`{"type":"toolCall","name":"edit","arguments":{"edits":[{"path":"p"},{"path":"p"},{"path":"q/r"}]}}`, "/home/dev/q", "edit q/r"},
		{`{"type":"toolCall","name":"bash","arguments":{"command":"cat main.go"}}`, "/home/dev/main.go", ""},
		{`{"type":"text","text":"main.go","path":"main.go"}`, "/home/dev/main.go", ""},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"` + strings.Repeat("./", 2000) + `a"}}`, "/home/dev/a", "edit " + strings.Repeat("./", 87) + ".…"},
		{`{"type":"toolCall","name":"edit","arguments":{"path":"` + strings.Repeat("./", 2048) + `a"}}`, "/home/dev/a", ""},
	} {
		text := strings.Replace(sessiontest.Header, `"cwd":"/w"`, `"cwd":"`+cwd+`"`, 1)
		require.Contains(t, text, cwd)
		text += `{"type":"message","id":"u","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"do"}}` + "\n" +
			`{"type":"message","id":"a","parentId":"u","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"assistant","content":[` + c.call + `]}}` + "\n" +
			`{"type":"message","id":"b","parentId":null,"timestamp":"2026-01-02T03:04:05.500Z","message":{"role":"assistant","content":[` + c.call + `]}}` + "\n"
		m, err := NewTouched(c.path)
		require.NoError(t, err)
		result, err := New(Sessions{Files: sessiontest.Memory(t, []byte(text))}).Search(context.Background(), m)
		require.NoError(t, err)
		if c.line == "" {
			require.Empty(t, result.Hits, "%s %s", c.path, c.call)
			require.Equal(t, TouchedColumns, string(result.Table()))
			continue
		}
		require.Len(t, result.Hits, 2, "%s %s", c.path, c.call)
		require.Equal(t, []string{c.line, c.line, "u", ""}, []string{result.Hits[0].Line, result.Hits[1].Line, result.Hits[0].Prompt, result.Hits[1].Prompt})
		lines := strings.Split(string(result.Table()), "\n")
		require.Contains(t, lines[1], "/entries/a.json\t"+result.Hits[0].Directory()+"/entries/u.json\t")
		require.Contains(t, lines[2], "/entries/b.json\t-\t")
	}
	for _, name := range []string{"", "a", "./a", "/a\x00b"} {
		_, err := NewTouched(name)
		require.ErrorContains(t, err, "not an absolute path", name)
	}
}
