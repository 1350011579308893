package history

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// typed makes a directory with a history.jsonl.
func typed(t *testing.T, lines ...string) (dir string, h History) {
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, LinesName), []byte(strings.Join(lines, "\n")), 0o600))
	return dir, Lines(sessiontest.OpenDir(t, dir))
}

const (
	claudeLine = `{"display":"Fix the <b>parser</b>","pastedContents":{},"timestamp":1767225601999,"project":"/w","sessionId":"s"}`
	codexLine  = `{"session_id":"r","ts":1767225601,"text":"Äpfel zählen"}`
)

// refuses requires that a query has no answer, for a reason.
func refuses(t *testing.T, h History, match string, want error) {
	t.Helper()
	_, err := h.Render(context.Background(), match, nil)
	require.ErrorIs(t, err, want)
}

// show returns the lines of the answer to a query.
func show(t *testing.T, h History, match string) []string {
	r, err := h.Render(context.Background(), match, nil)
	require.NoError(t, err, match)
	return strings.Split(strings.TrimSuffix(string(r.Text), "\n"), "\n")
}

// TestLines: the prompts of Claude Code and Codex are shown as those of the client's database, and searched by words.
func TestLines(t *testing.T) {
	const fix = `{"id":1,"prompt":"Fix the <b>parser</b>","created_at":"2026-01-01T00:00:01Z","cwd":"/w","session_id":"s"}`
	const count = `{"id":2,"prompt":"Äpfel zählen","created_at":"2026-01-01T00:00:01Z","cwd":null,"session_id":"r"}`
	const late = `{"id":7,"prompt":"late","created_at":"2026-01-01T00:00:09Z","cwd":null}`
	dir, h := typed(t, claudeLine, codexLine, "\x00\xffgarbage", `[1]`, `{"display":7}`, `{"ts":3}`,
		`{"display":"late","timestamp":1767225609000}`, `{"display":"old","timestamp":-5}`, ``, `{"display":"tor`)
	require.Equal(t, []string{late, count, fix, `{"id":8,"prompt":"old","created_at":"1970-01-01T00:00:00Z","cwd":null}`}, show(t, h, ""))
	for match, want := range map[string]string{
		"PARSER fix": fix, "pars": fix, "äpfel": count, "the-b": fix, "absent": "", "parser absent": "",
	} {
		require.Equal(t, []string{want}, show(t, h, match), match)
	}
	refuses(t, h, "?!", ErrQuery)
	before, err := h.State()
	require.NoError(t, err)
	name := filepath.Join(dir, LinesName)
	sessiontest.AppendTo(t, name, `n","timestamp":1767225610000}`+"\n")
	require.Contains(t, show(t, h, "torn")[0], `"id":10,"prompt":"torn"`)
	after, err := h.State()
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	require.NoError(t, os.Truncate(name, maxFileBytes+1))
	refuses(t, h, "", ErrTooBig)
	require.NoError(t, os.Remove(name))
	_, err = h.State()
	require.ErrorIs(t, err, fs.ErrNotExist)
	refuses(t, h, "", fs.ErrNotExist)
}

// TestSeveral: the histories of several agents are one, by time, however many of them are there.
func TestSeveral(t *testing.T) {
	_, claude := typed(t, claudeLine, strings.Replace(claudeLine, "1767225601999", "1767225605000", 1))
	dir, codex := typed(t, codexLine, strings.Replace(codexLine, "1767225601", "1767225603", 1))
	_, none := typed(t)
	_, database := typed(t, `{"display":"old","timestamp":1000}`, `{"display":"parse it","timestamp":1767225604000}`)
	all := Several{{"omp", database}, {"none", none}, {"claude", claude}, {"codex", codex}}
	var got []string
	for _, line := range show(t, all, "") {
		agent, _, _ := strings.Cut(line, ",")
		got = append(got, strings.TrimPrefix(agent, `{"agent":`)+" "+timeOf([]byte(line)))
	}
	require.Equal(t, []string{
		`"claude" 2026-01-01T00:00:05Z`, `"omp" 2026-01-01T00:00:04Z`, `"codex" 2026-01-01T00:00:03Z`, `"claude" 2026-01-01T00:00:01Z`,
		`"codex" 2026-01-01T00:00:01Z`, `"omp" 1970-01-01T00:00:01Z`,
	}, got)
	require.Len(t, show(t, all, "pars"), 3)
	refuses(t, all, "?!", ErrQuery)
	require.Len(t, show(t, all, `"parse it"`), 1)
	states := map[State]bool{}
	for n := range 3 {
		state, err := all.State()
		require.NoError(t, err)
		states[state] = true
		require.NoError(t, os.WriteFile(filepath.Join(dir, LinesName), []byte(strings.Repeat(codexLine+"\n", 3+n)), 0o600))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, LinesName)))
	state, err := all.State()
	require.NoError(t, err)
	states[state] = true
	require.Len(t, states, 4, fmt.Sprint(states))
	_, err = Several{{"codex", codex}}.State()
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// FuzzLines: any file has an answer, with at most a line for each of its own.
func FuzzLines(f *testing.F) {
	f.Add([]byte(claudeLine+"\n"+codexLine), "pars")
	f.Add([]byte(`{"display":"x","timestamp":1e300}`), "")
	f.Fuzz(func(t *testing.T, text []byte, match string) {
		_, h := typed(t, string(text))
		r, err := Several{{"a", h}}.Render(context.Background(), match, nil)
		if err != nil {
			require.ErrorIs(t, err, ErrQuery)
			return
		}
		require.LessOrEqual(t, strings.Count(string(r.Text), "\n"), strings.Count(string(text), "\n")+1)
	})
}
