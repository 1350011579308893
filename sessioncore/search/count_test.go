package search

import (
	"bytes"
	gz "compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	_ "sessionfs/sessioncore/agents/all"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestCountHasNoLimit: the limit is one of hits that are shown.
func TestCountHasNoLimit(t *testing.T) {
	line := sessiontest.MessageLine(0, `{"role":"user","content":"heron"}`)
	text := sessiontest.Header + line + strings.Replace(line, `"e0"`, `"e1"`, 1) + strings.Replace(line, `"e0"`, `"e2"`, 1)
	s := New(SearchedSessions{Files: sessiontest.Memory(t, []byte(text)), Limit: 1})
	found, _, err := s.Count(t.Context(), query(t, "heron"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, 3, found[0].Count)
}

// TestCountsBySession: each session has its own hits, and a copy counts in the older one alone.
func TestCountsBySession(t *testing.T) {
	line := sessiontest.MessageLine(0, `{"role":"user","content":"heron"}`)
	named := func(id string) string { return strings.Replace(line, `"e0"`, `"`+id+`"`, 1) }
	files := memory.New()
	for name, text := range map[string]string{"a": named("e1"), "b": named("e2") + named("e3"), "c": named("e3") + named("e4")} {
		require.NoError(t, files.WriteFile("p/"+name+".jsonl", []byte(sessiontest.Header+text)))
	}
	sums := sumsOf(t, New(SearchedSessions{Files: files}), query(t, "heron"))
	require.Equal(t, map[string]int{"p/a.jsonl": 1, "p/b.jsonl": 2, "p/c.jsonl": 1}, sums)
}

// words are parts of a text of which queries are made.
var words = regexp.MustCompile(`[\p{L}\d]{2,12}`)

// queriesFor returns queries of every form, with words of a text; each begins with a key or "".
func queriesFor(t *testing.T, text, key string) (queries []*Query) {
	found := words.FindAllString(text, -1)
	for n := range 2 {
		word := found[len(found)*(2*n+1)/4]
		other := found[len(found)*(n+1)/3]
		for _, form := range []string{
			"%", `"% @"`, "% -@", "% @", "role:user %", "role:assistant %", "role:tool %", "role:user",
			"tool:@ %", "tool:bash", "model:@", "title:%", "title:% @", "after:2020-01-01 %", "before:2020-01-01 %",
		} {
			form = strings.NewReplacer("%", word, "@", other).Replace(form)
			queries = append(queries, query(t, key+form))
		}
		queries = append(queries, query(t, key+strings.ToLower(word)), query(t, key+strings.ToUpper(word)))
		either, err := Parser{}.Regexp("(?i)"+word+"|"+other, key+"-"+found[0])
		require.NoError(t, err)
		queries = append(queries, either)
	}
	return queries
}

// TestCountsAreRows: of each query, in the sessions of each agent, the number of hits is that of the rows
// that a search without a limit has, also of archived sessions. Two sessions have copies of the same entries.
func TestCountsAreRows(t *testing.T) {
	files, err := filepath.Glob("../../testdata/agents/*/*.jsonl")
	require.NoError(t, err)
	hits := map[string]int{}
	temporary := t.TempDir()
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := filepath.Base(filepath.Dir(file))
		i := slices.IndexFunc(agents.All(), func(a *agents.Agent) bool { return a.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		raw := memory.New()
		packed := t.TempDir()
		for _, copied := range []string{"a", "b"} {
			path := "-p/019c6f0e-7a11-4000-8000-00000000000" + copied + ".jsonl"
			require.NoError(t, raw.WriteFile(path, text))
			sessiontest.WriteFile(t, filepath.Join(packed, path+".gz"), string(pack(t, text)))
		}
		archive := gzip.New(sessiontest.OpenDir(t, packed), nil, temporary)
		for key, files := range map[string]storage.Files{"": raw, "in:archive ": archive} {
			for _, q := range queriesFor(t, string(text), key) {
				require.Equal(t, key != "", q.Archive())
				open := func() *Searcher {
					format, err := agents.All()[i].Alone(files, rawjson.Value("{}"))
					require.NoError(t, err)
					return New(SearchedSessions{Files: agents.NewFiles(files, format, nil, temporary)})
				}
				counted := sumsOf(t, open(), q)
				rows := rowsOf(t, open(), q)
				require.Equal(t, rows, counted, "%s: %s", file, q.Key())
				for _, n := range rows {
					hits[key+name] += n
				}
			}
		}
	}
	require.NotEmpty(t, hits)
	for name, n := range hits {
		require.Greater(t, n, 10, name)
	}
}

// pack compresses a text as an archive has it.
func pack(t *testing.T, text []byte) []byte {
	var packed bytes.Buffer
	w := gz.NewWriter(&packed)
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.Bytes()
}

// sumsOf returns how many hits Count has, by file.
func sumsOf(t *testing.T, s *Searcher, q *Query) map[string]int {
	found, unread, err := s.Count(t.Context(), q)
	require.NoError(t, err)
	require.Empty(t, unread)
	sums := map[string]int{}
	for _, f := range found {
		sums[f.File] = f.Count
	}
	return sums
}

// rowsOf returns how many hits Search has, by file.
func rowsOf(t *testing.T, s *Searcher, q *Query) map[string]int {
	result, err := s.Search(t.Context(), q)
	require.NoError(t, err)
	require.Empty(t, result.Unread)
	rows := map[string]int{}
	for i := range result.Hits {
		rows[result.Hits[i].File]++
	}
	return rows
}
