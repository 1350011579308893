package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
)

// slowUsage is what an entry reports.
type slowUsage struct {
	key, day, model string // key is "" if it has no copies
	Sum
}

// reportedUsages returns the usage of an entry, as a list of none or one.
func reportedUsages(e object) []map[string]any {
	message, _ := e["message"].(map[string]any)
	details, _ := message["details"].(map[string]any)
	for _, u := range []any{e["usage"], message["usage"], details["usage"]} {
		if usage, ok := u.(map[string]any); ok {
			return []map[string]any{usage}
		}
	}
	return nil
}

// slowUsages reads what a session's entries
func (s *testStore) slowUsages(name string) (header object, all []slowUsage) {
	header, entries := s.get(name)
	day := header["timestamp"].(string)[:10]
	for _, e := range entries {
		u := slowUsage{}
		if at, ok := e["timestamp"].(string); ok {
			day = at[:10]
			u.key = at + " " + e["id"].(string)
		}
		u.day = day
		message, _ := e["message"].(map[string]any)
		for _, usage := range reportedUsages(e) {
			text, err := json.Marshal(usage)
			require.NoError(s.t, err)
			require.NoError(s.t, json.Unmarshal(text, &u.Sum))
			u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
			switch {
			case message["role"] == "assistant":
				u.AssistantMessages, u.model = 1, fmt.Sprintf("%s/%s", message["provider"], message["model"])
			case message["toolName"] == "task":
				u.model = "(subagents)"
			default:
				u.model = fmt.Sprintf("%s/%s", e["provider"], e["model"])
			}
			all = append(all, u)
		}
	}
	return header, all
}

// slowLines adds up all sessions, with no more thought than that.
func (s *testStore) slowLines() map[string]*Sum {
	type session struct {
		began, name string
		cwd         any
		usages      []slowUsage
	}
	var sessions []session
	for _, name := range s.names {
		header, usages := s.slowUsages(name)
		sessions = append(sessions, session{header["timestamp"].(string), name, header["cwd"], usages})
	}
	slices.SortFunc(sessions, func(a, b session) int { return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.name, b.name)) })
	counted := map[string]bool{"": false}
	lines := map[string]*Sum{}
	for _, session := range sessions {
		for _, u := range session.usages {
			if !counted[u.key] {
				counted[u.key] = u.key != ""
				addTo(lines, fmt.Sprint(u.day, " ", session.cwd, " ", u.model), &u.Sum)
			}
		}
	}
	return lines
}

// lines reads usage.jsonl.
func (s *testStore) lines(c *Costs) map[string]*Sum {
	s.t.Helper()
	text, err := s.text(context.Background(), c)
	require.NoError(s.t, err)
	lines := map[string]*Sum{}
	last := ""
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var line struct {
			Day, CWD, Model string
			Sum
		}
		err := d.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(s.t, err)
		of := line.Day + " " + line.CWD + " " + line.Model
		require.Less(s.t, last, of, "in order, each once")
		last, lines[of] = of, &line.Sum
	}
	return lines
}

func (s *testStore) text(ctx context.Context, c *Costs) ([]byte, error) {
	s.t.Helper()
	sessions, err := s.list.Sessions(context.Background())
	require.NoError(s.t, err)
	clear(s.files.names)
	hold := budget.New(budget.Default).Hold()
	return c.Lines(ctx, sessions.All(), &hold)
}

// settleAll waits until the files' times would show another change.
func settleAll() { time.Sleep(30 * time.Millisecond) }

// TestAgreesWithASlowReader: of sessions and forks of forks, an answer counts once; what is a session's own is what its
// parent has not. The sums stay right when sessions grow, come and go, and only those are read that changed.
func TestAgreesWithASlowReader(t *testing.T) {
	for seed, sessions := range []int{300, 40, 40, 40} {
		s := newTestStore(t, uint64(seed))
		s.grow(sessions)
		settleAll()
		c := NewCosts(s.store, Prices{})
		want := s.slowLines()
		require.Equal(t, want, s.lines(c))
		require.GreaterOrEqual(t, len(s.files.names), sessions-1, "all but one that is indexed")

		require.Equal(t, want, s.lines(c))
		require.Empty(t, s.files.names, "nothing changed")

		changed := map[string]bool{}
		for range 5 {
			name := s.names[s.rnd.IntN(len(s.names))]
			_, entries := s.get(name)
			s.add(name, s.entries(entries, 3))
			changed[name] = true
		}
		settleAll()
		require.Equal(t, s.slowLines(), s.lines(c))
		require.Subset(t, slices.Collect(maps.Keys(changed)), slices.Collect(maps.Keys(s.files.names)), "those that grew")

		for range sessions / 15 { // also parents, whose answers now count elsewhere
			at := s.rnd.IntN(len(s.names))
			require.NoError(t, os.Remove(filepath.Join(s.root, s.names[at])))
			s.names = slices.Delete(s.names, at, at+1)
		}
		s.grow(sessions - sessions/30)
		settleAll()
		want = s.slowLines()
		require.Equal(t, want, s.lines(c))
		require.Less(t, len(s.files.names), sessions*2/3, "those with the answers of sessions that are gone")
		require.LessOrEqual(t, len(c.known), len(s.names))

		c.most, c.size, c.known = c.size/2, 0, map[string]fact[account]{} // not all is kept
		for range 2 {
			require.Equal(t, want, s.lines(c))
			require.LessOrEqual(t, c.size, c.most)
		}
		require.Less(t, len(s.files.names), len(s.names))
		require.NotEmpty(t, s.files.names)
	}
}

// TestStopped: when the reader is gone, no further session is read, and what was read need not be read again.
func TestStopped(t *testing.T) {
	s := newTestStore(t, 1)
	s.grow(100)
	settleAll()
	c := NewCosts(s.store, Prices{})
	_, err := s.list.Sessions(context.Background())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read := make(chan struct{}, 1000)
	s.files.onOpen = func() {
		if read <- struct{}{}; len(read) == 40 {
			cancel()
		}
	}
	_, err = s.text(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, len(read), 40+2*maxAtOnce)
	s.files.onOpen = nil
	require.Equal(t, s.slowLines(), s.lines(c))
	require.LessOrEqual(t, len(s.files.names), 100-40+3*maxAtOnce)
}

// TestOddSessions: what is no session is left out, and names and times of any kind do no harm.
func TestOddSessions(t *testing.T) {
	s := newTestStore(t, 1)
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "p"), 0o755))
	for name, text := range map[string]string{
		"none":  "no session\n",
		"found": "{\"type\":\"x\"}\n" + `{"type":"session","version":3,"id":"later","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/w"}` + "\n",
		"odd": `{"type":"session","version":3,"id":"odd","timestamp":"never","cwd":"/w\ud800\n<&>"}` + "\n" +
			`{"type":"message","id":"a","timestamp":-1,"message":{"role":"assistant","content":[],"usage":{"input":1e400,"output":1e300}}}` + "\n",
		"future": `{"type":"session","version":3,"id":"future","timestamp":1e300}` + "\n" +
			`{"type":"message","id":"a","timestamp":8.64e15,"message":{"role":"assistant","content":[],"model":"\ud800"}}` + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(s.root, "p", name+".jsonl"), []byte(text), 0o644))
	}
	text, err := s.text(context.Background(), NewCosts(s.store, Prices{}))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Contains(t, string(text),
		`{"day":"1969-12-31","cwd":"/w`+"\ufffd"+`\n<&>","model":"unknown/unknown","assistantMessages":1,"input":0,"output":1e+300,`)
	require.Equal(t, 2, strings.Count(string(text), "\n"), "%s", text)
}

// TestNoRoom: where there is no memory, the reader is told.
func TestNoRoom(t *testing.T) {
	s := newTestStore(t, 1)
	s.grow(20)
	sessions, err := s.list.Sessions(context.Background())
	require.NoError(t, err)
	memory := budget.New(budget.Min)
	others, hold := memory.Hold(), memory.Hold()
	require.NoError(t, others.Resize(memory.Limit()-100))
	_, err = NewCosts(s.store, Prices{}).Lines(context.Background(), sessions.All(), &hold)
	require.ErrorIs(t, err, budget.ErrNoMemory)
	others.Close()
	_, err = NewCosts(s.store, Prices{}).Lines(context.Background(), sessions.All(), &hold)
	require.NoError(t, err)
	require.Zero(t, memory.Held())
}

func TestStatsWords(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 999.6: "1.0k", 9949: "9.9k", 12_345: "12k", 999_500: "1.0M", 2e9: "2.0G", 3e13: "30000G"} {
		require.Equal(t, want, Short(n))
	}
	require.Equal(t, "…b/c", (&Stats{by: []string{byCWD}}).cut(0, "a/b/c", 4))
	require.Equal(t, "A t…", (&Stats{by: []string{bySession}}).cut(0, "A title", 4))
	require.Equal(t, "██▌", drawBar(2.5, []string{"█", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}))
	require.Equal(t, "###", drawBar(2.5, []string{"#"}))
}
