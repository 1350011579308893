package listing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/claude"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// claudeLine is a record of a conversation of Claude Code.
func claudeLine(n int, cwd, more string) string {
	return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"type":"user","cwd":%q,"sessionId":"%08d","version":"2.1.1",`+
		`"uuid":"u%d","timestamp":"2026-03-%02dT10:00:00.000Z","message":{"role":"user","content":"prompt %d"}%s}`+"\n",
		cwd, n, n, 1+n%20, n, more)
}

// listTree returns the names in each directory of a tree, by paths.
func listTree(t *testing.T, list func() *Listing, v View, dir string, into map[string][]string) {
	entries, err := list().TreeList(t.Context(), v, dir)
	require.NoError(t, err)
	into[dir] = []string{}
	for _, e := range entries {
		into[dir] = append(into[dir], e.Name)
		if e.Dir != "" {
			listTree(t, list, v, e.Dir, into)
		}
	}
	slices.Sort(into[dir])
}

// TestBriefTree: a listing that answers one question shows a tree as any other does, also where sessions moved, have no
// directory, or are no sessions, and reads less of them.
func TestBriefTree(t *testing.T) {
	files := memory.New()
	long := strings.Repeat(claudeLine(5, "/w/long", ""), 1000)
	for n := range 40 {
		cwd := fmt.Sprintf("/w/%d", n%4)
		text := claudeLine(n, cwd, "") + claudeLine(n+100, cwd, "")
		switch n {
		case 10:
			text += `{"type":"relocated","sessionId":"x","relocatedCwd":"/moved/a"}` + "\n"
		case 11:
			text = text + long + `{"type":"worktree-state","sessionId":"x","worktreeSession":{"worktreePath":"/moved/b"}}` + "\n"
		case 12:
			text = "no session\n"
		case 13:
			text = ""
		case 14:
			text = strings.ReplaceAll(text, `"cwd":"/w/2",`, "")
		case 15:
			text = `{"type":"summary","summary":"in front","leafUuid":"x"}` + "\n" + claudeLine(n, "/w", "")
		case 16:
			text = strings.ReplaceAll(text, "2026-03", "no-time")
		case 17:
			text = strings.Replace(text, "{", "  {", 1) + long
		case 18:
			text = claudeLine(n, "/w/"+strings.Repeat("x/", 3000), "")
		case 19:
			text = claudeLine(n, "/w", `,"pad":"`+strings.Repeat("x", 70_000)+`"`)
		case 20:
			text = claudeLine(n, "/w/0/prompt 16", "") // as the link of a session without a time
		}
		require.NoError(t, files.WriteFile(fmt.Sprintf("-p%d/%08d.jsonl", n%3, n), []byte(text)))
	}
	require.NoError(t, files.WriteFile("-p1/agent-a1.jsonl", []byte(claudeLine(1, "/side", ""))))
	fresh := func(brief bool) func() *Listing {
		return func() *Listing {
			p := claude.NewProjects(files)
			format := claude.Format{Projects: p}
			shown := agents.Shown{Files: p, Format: format}
			store := sessioncore.NewStore(agents.NewFiles(shown, format, nil, t.TempDir()))
			t.Cleanup(store.Close)
			again := New(store, "")
			if brief {
				again.SetBrief()
			}
			return again
		}
	}
	for _, v := range []View{ByCwd, ByDate} {
		want := map[string][]string{}
		got := map[string][]string{}
		listTree(t, fresh(false), v, "/", want)
		listTree(t, fresh(true), v, "/", got)
		require.Equal(t, want, got)
		require.Greater(t, len(want), 8)
		work := func(brief bool) int64 {
			list := fresh(brief)()
			return sessiontest.WorkOf(func() {
				_, err := list.TreeList(t.Context(), v, "/")
				require.NoError(t, err)
			}).Scanned
		}
		require.Less(t, work(true), work(false)/2)
	}
	brief := fresh(true)()
	_, err := brief.TreeList(t.Context(), ByCwd, "/")
	require.NoError(t, err)
	require.Equal(t, namesOf(fresh(false)().all(t)), namesOf(brief.all(t)), "a list after it reads the rest")
}
