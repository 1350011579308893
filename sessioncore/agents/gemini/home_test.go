package gemini

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

const (
	header = `{"sessionId":"a1a1a1a1-0000-4000-8000-000000000001","projectHash":"h",` +
		`"startTime":"2026-01-01T00:00:00Z"}` + "\n"
	context1 = `{"$set":{"messages":[{"id":"c","type":"user","content":"<session_context>\n` +
		`- **Workspace Directories:**\n  - /srv/pier\n"}]}}` + "\n"
	prompt = `{"id":"u","type":"user","content":"Hello"}` + "\n"
)

// tree returns the names that are shown of a home with some files, and opens it.
func tree(t *testing.T, files map[string]string) (names []string, shown storage.Files) {
	dir := t.TempDir()
	for name, text := range files {
		sessiontest.WriteFile(t, filepath.Join(dir, name), text)
	}
	h := newHome(sessiontest.OpenDir(t, dir))
	shown = agents.NewFiles(agents.Shown{Files: h, Format: h}, h, nil, t.TempDir())
	var walk func(dir string)
	walk = func(dir string) {
		items, err := storage.List(shown, dir)
		require.NoError(t, err)
		for _, item := range items {
			name := path.Join(dir, item.Name)
			st, err := shown.Stat(name)
			require.NoError(t, err, name)
			require.Equal(t, item.Kind, st.Kind, name)
			if item.Kind == storage.KindDir {
				walk(name)
			} else {
				names = append(names, name)
			}
		}
	}
	walk("")
	slices.Sort(names)
	return names, shown
}

// TestHome: the sessions of all projects are shown once, with those of subagents below them.
func TestHome(t *testing.T) {
	hash := projectOf("/srv/pier")
	const a, b = "session-2026-01-01T00-00-a1a1a1a1", "session-2026-01-02T00-00-b2b2b2b2"
	names, shown := tree(t, map[string]string{
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
	require.Equal(t, []string{
		hash + "/session-c.jsonl", "pier/" + a + ".jsonl", "pier/" + a + "/subagents/s.jsonl", "pier/" + b + ".jsonl",
	}, names)
	const resumed = "pier/session-2026-01-03T00-00-a1a1a1a1.jsonl"
	for _, name := range []string{"bin", "pier/" + b, "pier/note.jsonl", "pier/" + a + "/x", resumed} {
		_, err := shown.Stat(name)
		require.True(t, storage.IsMissing(err), name)
		_, err = shown.Open(name)
		require.Error(t, err, name)
	}
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
		_, shown := tree(t, c.files)
		obj, err := shown.Open("p/session-a.jsonl")
		require.NoError(t, err)
		st, err := obj.Stat()
		require.NoError(t, err)
		text := make([]byte, st.Size)
		require.NoError(t, storage.ReadFull(obj, text, 0))
		require.Contains(t, string(text), fmt.Sprintf(`"cwd":%q`, c.want), name)
		require.NoError(t, obj.Close())
	}
}

// counted counts the bytes that are read.
type counted struct {
	storage.Files
	bytes *int64
}

func (c counted) Open(name string) (storage.Object, error) {
	obj, err := c.Files.Open(name)
	return countedObject{obj, c.bytes}, err
}

type countedObject struct {
	storage.Object
	bytes *int64
}

func (c countedObject) ReadAt(p []byte, off int64) (int, error) {
	*c.bytes += int64(len(p))
	return c.Object.ReadAt(p, off)
}

// TestList: a list reads 64 KiB of a session, whatever its form, and knows its title.
func TestList(t *testing.T) {
	long := strings.Repeat(`{"id":"x","type":"info","content":"`+strings.Repeat("x", 1000)+`"}`+"\n", 300)
	lines := header + prompt + long
	document := "{\n  \"sessionId\": \"d\",\n  \"messages\": [\n" + prompt + "," +
		strings.TrimSuffix(strings.ReplaceAll(long, "}\n", "},\n"), ",\n") + "\n  ],\n  \"kind\": \"subagent\",\n  \"summary\": \"Old\"\n}\n"
	for name, c := range map[string]struct{ text, id, title string }{
		"session-l.jsonl": {lines, "a1a1a1a1-0000-4000-8000-000000000001", "Hello"},
		"session-s.jsonl": {lines + `{"$set":{"summary":"Named"}}` + "\n", "a1a1a1a1-0000-4000-8000-000000000001", "Named"},
		"session-d.json":  {document, "d", "Old"},
	} {
		dir, bytes := t.TempDir(), int64(0)
		sessiontest.WriteFile(t, filepath.Join(dir, "tmp/p/chats", name), c.text)
		sessiontest.WriteFile(t, filepath.Join(dir, "tmp/p/.project_root"), "/srv/p")
		h := newHome(counted{sessiontest.OpenDir(t, dir), &bytes})
		base, _, _ := strings.Cut(name, ".")
		obj, err := agents.NewFiles(h, h, nil, t.TempDir()).Open("p/" + base + ending)
		require.NoError(t, err)
		text, _, _, err := obj.(interface {
			Beginning() ([]byte, storage.Stat, int64, error)
		}).Beginning()
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		require.Contains(t, first, fmt.Sprintf(`"id":%q`, c.id))
		require.Contains(t, first, fmt.Sprintf(`"cwd":"/srv/p","title":%q`, c.title))
		require.Equal(t, name == "session-d.json", strings.Contains(first, `"subagent":"subagent"`))
		require.Contains(t, string(text), `"text":"Hello"`)
		require.Less(t, bytes, int64(65<<10), name)
		require.NoError(t, obj.Close())
	}
}

// TestPrompts: the prompts of all projects are one history.
func TestPrompts(t *testing.T) {
	dir := t.TempDir()
	log := func(project, text string) {
		sessiontest.WriteFile(t, filepath.Join(dir, "tmp", project, "logs.json"), text)
	}
	h := agents.Find("gemini").Prompts(sessiontest.OpenDir(t, dir))
	_, err := h.State()
	require.True(t, storage.IsMissing(err))
	sessiontest.WriteFile(t, filepath.Join(dir, "tmp/a/.project_root"), "/srv/a")
	log("a", `[{"sessionId":"s","message":"one","timestamp":"2026-01-01T00:00:01.000Z"},`+
		`{"message":7},{"message":"no time"}]`)
	log("b", `[{"message":"two","timestamp":"2026-01-01T00:00:02.000Z"}]`)
	log("c", `[{"mess`)
	r, err := h.Render(context.Background(), "", nil)
	require.NoError(t, err)
	require.Equal(t, `{"id":2,"prompt":"two","created_at":"2026-01-01T00:00:02Z","cwd":null}
{"id":1,"prompt":"one","created_at":"2026-01-01T00:00:01Z","cwd":"/srv/a","session_id":"s"}
`, string(r.Text))
}
