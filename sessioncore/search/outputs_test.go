package search

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/claude"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestOutputName: the name of a file in a result leads to no other directory.
func TestOutputName(t *testing.T) {
	for text, want := range map[string]string{
		`"saved to: /h/p/s/tool-results/a.txt\n\nPreview"`:         "a.txt",
		`"saved to: C:\\p\\s\\tool-results\\a.txt\\n"`:             "a.txt",
		`"in /tool-results/a.txt"`:                                 "a.txt",
		`"in /tool-results/../../x.txt"`:                           "",
		`"in /tool-results/..\n"`:                                  "",
		`"in /tool-results/a/b.txt"`:                               "a",
		`"tool-results"`:                                           "",
		`"tool-results are long"`:                                  "",
		`"in /tool-results/`:                                       "",
		`"in /tool-results/` + string(make([]byte, 300)) + `.txt"`: "",
	} {
		name, _ := outputName(rawjson.Value(text))
		require.Equal(t, want, name, "%q", text)
	}
}

// openings counts the files of a store that are opened.
type openings struct {
	*memory.Storage
	count atomic.Int64
}

func (o *openings) Open(name string) (storage.Object, error) {
	o.count.Add(1)
	return o.Storage.Open(name)
}

// TestOutputsBeside: a word in a long result beside a session is found, and without a directory of long results none is
// opened, however often the session names one.
func TestOutputsBeside(t *testing.T) {
	const session = "-p/019c6f0e-7a11-4000-8000-000000000001"
	record := func(n int, content string) string {
		return fmt.Sprintf(`{"parentUuid":"u%d","isSidechain":false,"type":"user","cwd":"/w","sessionId":"s","version":"2.1.1","uuid":"u%d",`+
			`"timestamp":"2026-03-01T10:00:%02d.000Z","message":{"role":"user","content":%s}}`+"\n", n-1, n, n, content)
	}
	text := record(1, `"how many herons"`)
	for n := range 20 {
		text += record(n+2, fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t","content":"herons saved to: /h/tool-results/a%d.txt\n"}]`, n))
	}
	search := func(files *openings, query string) int {
		require.NoError(t, files.WriteFile(session+".jsonl", []byte(text)))
		p := claude.NewProjects(files)
		format := claude.Format{Projects: p}
		s := New(SearchedSessions{Files: agents.NewFiles(agents.Shown{Files: p, Format: format}, format, nil, t.TempDir())})
		q, err := Parser{}.Query(query)
		require.NoError(t, err)
		files.count.Store(0)
		found, unread, err := s.Count(t.Context(), q)
		require.NoError(t, err)
		require.Empty(t, unread)
		hits := 0
		for _, f := range found {
			hits += f.Count
		}
		return hits
	}
	files := &openings{Storage: memory.New()}
	require.Equal(t, 21, search(files, "herons"))
	require.Less(t, files.count.Load(), int64(10))
	require.Zero(t, search(files, "egrets"))
	require.NoError(t, files.WriteFile(session+"/tool-results/a3.txt", []byte("two egrets")))
	require.Equal(t, 1, search(files, "egrets"))
	require.Equal(t, 21, search(files, "herons"))
}

// TestOutputOfAnotherTime: a long result beside the session is a text of its own entry alone, also where that is of
// another time than the query's.
func TestOutputOfAnotherTime(t *testing.T) {
	const session = "-p/019c6f0e-7a11-4000-8000-000000000001"
	record := func(n, day int, content string) string {
		return fmt.Sprintf(`{"parentUuid":"u%d","isSidechain":false,"type":"user","cwd":"/w","sessionId":"s","version":"2.1.1","uuid":"u%d",`+
			`"timestamp":"2026-03-%02dT10:00:00.000Z","message":{"role":"user","content":%s}}`+"\n", n-1, n, day, content)
	}
	text := record(1, 1, `"how many herons"`) +
		record(2, 5, `[{"type":"tool_result","tool_use_id":"t","content":"herons saved to: /h/tool-results/a.txt\n"}]`) +
		record(3, 1, `"how many herons now"`)
	files := memory.New()
	require.NoError(t, files.WriteFile(session+".jsonl", []byte(text)))
	require.NoError(t, files.WriteFile(session+"/tool-results/a.txt", []byte("two egrets")))
	p := claude.NewProjects(files)
	format := claude.Format{Projects: p}
	s := New(SearchedSessions{Files: agents.NewFiles(agents.Shown{Files: p, Format: format}, format, nil, t.TempDir())})
	for query, want := range map[string]int{
		"egrets":                           1,
		"egrets before:2026-03-03":         0,
		"herons before:2026-03-03":         2,
		"herons -egrets before:2026-03-03": 2,
		"egrets after:2026-03-03":          1,
	} {
		q, err := Parser{}.Query(query)
		require.NoError(t, err)
		found, _, err := s.Count(t.Context(), q)
		require.NoError(t, err)
		hits := 0
		for _, f := range found {
			hits += f.Count
		}
		require.Equal(t, want, hits, query)
	}
}
