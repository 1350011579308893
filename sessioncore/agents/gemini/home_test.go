package gemini

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

const (
	header = `{"sessionId":"a1a1a1a1-0000-4000-8000-000000000001","projectHash":"h",` +
		`"startTime":"2026-01-01T00:00:00Z"}` + "\n"
	context1 = `{"$set":{"messages":[{"id":"c","type":"user","content":"<session_context>\n` +
		`- **Workspace Directories:**\n  - /srv/pier\n"}]}}` + "\n"
	prompt = `{"id":"u","type":"user","content":"Hello"}` + "\n"
)

// homeOf returns a home with some files.
func homeOf(t *testing.T, files map[string]string) *agentstest.Home {
	h := agentstest.New(t, "gemini")
	for name, text := range files {
		sessiontest.WriteFile(t, filepath.Join(h.Dir, name), text)
	}
	return h
}

// TestHome: the sessions of all projects are shown once, with those of subagents below them.
func TestHome(t *testing.T) {
	hash := projectOf("/srv/pier")
	const a, b = "session-2026-01-01T00-00-a1a1a1a1", "session-2026-01-02T00-00-b2b2b2b2"
	h := homeOf(t, map[string]string{
		"projects.json":                                          `{"projects":{"/srv/pier":"pier"}}`,
		"oauth_creds.json":                                       "{}",
		"tmp/bin/rg":                                             "",
		"tmp/pier/.project_root":                                 "/srv/pier",
		"tmp/pier/logs.json":                                     "[]",
		"tmp/pier/chats/" + a + ".jsonl":                         header + context1 + prompt,
		"tmp/pier/chats/" + a + ".json":                          "{}",
		"tmp/pier/chats/note.jsonl":                              header,
		"tmp/pier/chats/" + b + ".json":                          "{\n \"sessionId\":\"b\"\n}",
		"tmp/pier/chats/a1a1a1a1-x/s.jsonl":                      header + prompt,
		"tmp/pier/chats/a1a1a1a1-x/other.txt":                    "",
		"tmp/pier/chats/session-2026-01-03T00-00-a1a1a1a1.jsonl": header + context1, // of a resume
		"tmp/" + hash + "/chats/" + b + ".json":                  "{}",              // a copy
		"tmp/" + hash + "/chats/session-c.jsonl":                 header,
	})
	require.ElementsMatch(t, []string{
		hash + "/session-c.jsonl", "pier/" + a + ".jsonl", "pier/" + a + "/subagents/s.jsonl", "pier/" + b + ".jsonl",
	}, h.Sessions(""))
	const resumed = "pier/session-2026-01-03T00-00-a1a1a1a1.jsonl"
	for _, name := range []string{"bin", "pier/" + b, "pier/note.jsonl", "pier/" + a + "/x", resumed} {
		_, err := h.Stat(name)
		require.True(t, storage.IsMissing(err), name)
		_, err = h.Open(name)
		require.Error(t, err, name)
	}
}

// TestLost: the sessions of subagents whose session is gone are listed among the others, as no subagents.
func TestLost(t *testing.T) {
	subagent := strings.Replace(header, `"startTime"`, `"kind":"subagent","startTime"`, 1)
	h := homeOf(t, map[string]string{
		"tmp/pier/chats/session-2026-01-01T00-00-a1a1a1a1.jsonl": header + prompt,
		"tmp/pier/chats/a1a1a1a1-x/s.jsonl":                      subagent + prompt,
		"tmp/pier/chats/c3c3c3c3-x/s.jsonl":                      subagent + prompt,
		"tmp/pier/chats/c3c3c3c3-x/t.txt":                        "",
		"tmp/pier/chats/c3c3c3c3-x/deep/u.jsonl":                 subagent + prompt,
		"tmp/pier/chats/d4d4d4d4-x/s.jsonl":                      subagent + prompt,
	})
	const session = "pier/session-2026-01-01T00-00-a1a1a1a1"
	require.Equal(t, []string{"pier/s-d4d4d4d4-x.jsonl", "pier/s.jsonl", session + ".jsonl", session + "/subagents/s.jsonl"}, h.Sessions(""))
	require.NotContains(t, h.Read("pier/s.jsonl"), `"subagent"`)
	require.Contains(t, h.Read(session+"/subagents/s.jsonl"), `"subagent":"subagent"`)
	before := storagetest.Stat(t, h, "pier").Token
	sessiontest.WriteFile(t, filepath.Join(h.Dir, "tmp/pier/chats/c3c3c3c3-x/v.jsonl"), subagent+prompt)
	require.NotEqual(t, before, storagetest.Stat(t, h, "pier").Token, "a list looks again")
	require.Contains(t, h.Names("pier"), "v.jsonl")
	sessiontest.WriteFile(t, filepath.Join(h.Dir, "tmp/pier/chats/session-2026-01-03T00-00-c3c3c3c3.jsonl"), header+prompt)
	require.NotContains(t, h.Names("pier"), "v.jsonl")
	require.Contains(t, h.Names("pier/session-2026-01-03T00-00-c3c3c3c3/subagents"), "v.jsonl")
}

// TestDirectory: the working directory is that of the project, else the one that the client told the model.
func TestDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"root": {map[string]string{
			"tmp/p/.project_root": "/srv/root\n", "projects.json": `{"projects":{"/srv/list":"p"}}`,
		}, "/srv/root"},
		"list":    {map[string]string{"projects.json": `{"projects":{"/srv/my_list":"p"}}`}, "/srv/my_list"},
		"context": {map[string]string{"projects.json": "broken"}, "/srv/pier"},
	} {
		c.files["tmp/p/chats/session-a.jsonl"] = header + context1 + prompt
		require.Contains(t, homeOf(t, c.files).Read("p/session-a.jsonl"), fmt.Sprintf(`"cwd":%q`, c.want), name)
	}
}

// TestList: a list reads 64 KiB of a session, whatever its form, and knows its title.
func TestList(t *testing.T) {
	long := strings.Repeat(`{"id":"x","type":"info","content":"`+strings.Repeat("x", 1000)+`"}`+"\n", 300)
	lines := header + prompt + long
	elements := strings.ReplaceAll(long, "}\n", "},\n")
	elements = strings.TrimSuffix(elements, ",\n")
	document := "{\n  \"sessionId\": \"d\",\n  \"messages\": [\n" + prompt + "," + elements +
		"\n  ],\n  \"kind\": \"subagent\",\n  \"summary\": \"Old\"\n}\n"
	for name, c := range map[string]struct{ text, id, title string }{
		"session-l.jsonl": {lines, "a1a1a1a1-0000-4000-8000-000000000001", "Hello"},
		"session-s.jsonl": {lines + `{"$set":{"summary":"Named"}}` + "\n", "a1a1a1a1-0000-4000-8000-000000000001", "Named"},
		"session-d.json":  {document, "d", "Old"},
	} {
		dir := t.TempDir()
		bytes := 0
		sessiontest.WriteFile(t, filepath.Join(dir, "tmp/p/chats", name), c.text)
		sessiontest.WriteFile(t, filepath.Join(dir, "tmp/p/.project_root"), "/srv/p")
		counted := &storagetest.Hooked{Storage: sessiontest.OpenDir(t, dir)}
		counted.After = func(c storagetest.Call, err error) error {
			bytes += c.Size
			return err
		}
		base, _, _ := strings.Cut(name, ".")
		obj, err := agentstest.Open(t, "gemini", dir, counted).Open("p/" + base + ending)
		require.NoError(t, err)
		text, _, _, err := obj.(sessioncore.Converted).Beginning()
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		require.Contains(t, first, fmt.Sprintf(`"id":%q`, c.id))
		require.Contains(t, first, fmt.Sprintf(`"cwd":"/srv/p","title":%q`, c.title))
		require.Equal(t, name == "session-d.json", strings.Contains(first, `"subagent":"subagent"`))
		require.Contains(t, string(text), `"text":"Hello"`)
		require.Less(t, bytes, 65<<10, name)
		require.NoError(t, obj.Close())
	}
}

// TestPrompts: the prompts of all projects are one history.
func TestPrompts(t *testing.T) {
	home := agentstest.New(t, "gemini")
	h := agents.Find("gemini").Prompts(sessiontest.OpenDir(t, home.Dir))
	_, err := h.State()
	require.True(t, storage.IsMissing(err))
	home.Put("tmp/a/.project_root", "/srv/a")
	home.Put("tmp/a/logs.json", `[{"sessionId":"s","message":"one","timestamp":"2026-01-01T00:00:01.000Z"},`+
		`{"message":7},{"message":"no time"}]`)
	home.Put("tmp/b/logs.json", `[{"message":"two","timestamp":"2026-01-01T00:00:02.000Z"}]`)
	home.Put("tmp/c/logs.json", `[{"mess`)
	r, err := h.Render(context.Background(), "", nil)
	require.NoError(t, err)
	require.Equal(t, `{"id":2,"prompt":"two","created_at":"2026-01-01T00:00:02Z","cwd":null}
{"id":1,"prompt":"one","created_at":"2026-01-01T00:00:01Z","cwd":"/srv/a","session_id":"s"}
`, string(r.Text))
}
