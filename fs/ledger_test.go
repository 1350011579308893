package fs_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/report"
)

// costRows returns the costs of a directory, as stats of a new process adds them up.
func costRows(t *testing.T, o mountopts.Options) map[string]float64 {
	u, err := fs.Open(o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer u.Close()
	rows := map[string]float64{}
	err = u.Costs(t.Context(), fs.Count{}, func(r report.Row, agent string) {
		key := fmt.Sprint(r.Session.Path(), r.Day, r.Model, agent)
		rows[key] += float64(r.Sum.TotalTokens)
	})
	require.NoError(t, err)
	return rows
}

// TestKeptCharges: while another program appends to sessions of Claude Code, and replaces and removes some, what is kept of
// them is never used for another state.
func TestKeptCharges(t *testing.T) {
	if raceEnabled {
		t.Skip("most of it is one goroutine's")
	}
	home := t.TempDir()
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	project := filepath.Join(home, "projects", "-srv-pond")
	require.NoError(t, os.MkdirAll(project, 0o700))
	rng := rand.New(rand.NewPCG(11, 12))
	pad := strings.Repeat("herons ", 40_000) // so that it is worth while to keep their charges
	answers := 0
	answer := func() string {
		answers++
		return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"type":"assistant","cwd":"/srv/pond","sessionId":"x","version":"2.1.1",`+
			`"uuid":"u%d","timestamp":"2026-03-01T10:00:00.000Z","requestId":"r%d","message":{"id":"m%d","role":"assistant",`+
			`"model":"claude-opus-4-6","content":[{"type":"text","text":"Seven."}],"usage":{"input_tokens":%d,"output_tokens":1}}}`+"\n",
			answers, answers, answers, rng.IntN(1000))
	}
	begin := func() string {
		return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"type":"user","cwd":"/srv/pond","sessionId":"x","version":"2.1.1",`+
			`"uuid":"p%d","timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":%q}}`+"\n", answers, pad)
	}
	change := func(name string) {
		switch rng.IntN(8) {
		case 0:
			require.NoError(t, os.WriteFile(name, []byte(begin()+answer()), 0o600))
		case 1:
			_ = os.Remove(name)
		case 2:
			other := name + ".tmp"
			require.NoError(t, os.WriteFile(other, []byte(begin()+answer()+answer()), 0o600))
			require.NoError(t, os.Rename(other, name))
		default:
			f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			require.NoError(t, err)
			_, err = f.WriteString(answer())
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		if rng.IntN(3) == 0 { // as a copy does
			old := time.Unix(1_772_000_000, 0)
			_ = os.Chtimes(name, old, old)
		}
	}
	kept := mountopts.Options{Source: home}
	fresh := kept
	fresh.NoCache = true
	rounds := 60
	if full() {
		rounds = 400
	}
	for round := range rounds {
		for range rng.IntN(3) {
			change(filepath.Join(project, fmt.Sprintf("00000000-0000-4000-8000-00000000000%d.jsonl", rng.IntN(6))))
		}
		if rng.IntN(4) == 0 {
			time.Sleep(30 * time.Millisecond) // longer than a clock of files ticks
		}
		require.Equal(t, costRows(t, fresh), costRows(t, kept), round)
	}
	require.FileExists(t, filepath.Join(cache, "sessionfs", "charges"))
}

// TestCacheOfAnother: root keeps nothing in the home of another user, and nobody makes a home.
func TestCacheOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it is root who can write there")
	}
	home := t.TempDir()
	project := filepath.Join(home, "projects", "-srv-pond")
	require.NoError(t, os.MkdirAll(project, 0o700))
	text := fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"type":"user","cwd":"/srv/pond","sessionId":"x","version":"2.1.1",`+
		`"uuid":"p","timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":%q}}`+"\n", strings.Repeat("herons ", 200_000))
	require.NoError(t, os.WriteFile(filepath.Join(project, "00000000-0000-4000-8000-000000000001.jsonl"), []byte(text), 0o600))
	time.Sleep(30 * time.Millisecond) // longer than a clock of files ticks
	for _, c := range []struct {
		owner  int
		caches string
		isKept bool
	}{
		{owner: 0, caches: "cache", isKept: true},
		{owner: 1234, caches: "cache"},
		{owner: 0, caches: "home/cache"},
	} {
		dir := t.TempDir()
		caches := filepath.Join(dir, c.caches)
		t.Setenv("XDG_CACHE_HOME", caches)
		require.NoError(t, os.Chown(dir, c.owner, -1))
		costRows(t, mountopts.Options{Source: home})
		_, err := os.Stat(filepath.Join(caches, "sessionfs", "charges"))
		require.Equal(t, c.isKept, err == nil, c)
	}
}
