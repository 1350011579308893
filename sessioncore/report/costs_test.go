package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// slowLines adds up all sessions, with no more thought than that.
func (g *generator) slowLines() map[string]*Sum {
	counted, lines := map[string]bool{}, map[string]*Sum{}
	for _, s := range slices.SortedFunc(slices.Values(g.made), func(a, b *madeSession) int {
		return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.name, b.name))
	}) {
		day := s.began
		for _, e := range s.entries {
			day = cmp.Or(e.at, day)
			if key := e.at + " " + e.id; e.model != "" && !counted[key] {
				counted[key] = e.at != ""
				addTo(lines, day[:10]+" "+s.cwd+" "+e.model, &e.Sum)
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
	hold := budget.New(budget.Default).Hold()
	return c.Lines(ctx, s.sessions(), &hold)
}

// TestAgreesWithASlowReader: of sessions and forks of forks, an answer counts once; what is a session's own is what its
// parent has not. The sums stay right when sessions grow, come and go, and only those are read that changed.
func TestAgreesWithASlowReader(t *testing.T) {
	for seed, sessions := range []int{300, 40, 40, 40} {
		g := newGenerator(t, uint64(seed))
		g.grow(sessions)
		c := NewCosts(g.store, Prices{})
		want := g.slowLines()
		require.Equal(t, want, g.lines(c))
		require.GreaterOrEqual(t, len(g.opened), sessions-1, "all but one that is indexed")

		require.Equal(t, want, g.lines(c))
		require.Empty(t, g.opened, "nothing changed")

		changed := g.made[:5]
		for _, s := range changed {
			g.write(s, 4)
		}
		require.Equal(t, g.slowLines(), g.lines(c))
		for _, s := range changed {
			require.True(t, g.opened[s.name])
		}

		for range sessions / 15 { // also parents, whose answers now count elsewhere
			at := g.rnd.IntN(len(g.made))
			require.NoError(t, g.Remove(g.made[at].name))
			g.made = slices.Delete(g.made, at, at+1)
		}
		g.grow(sessions - sessions/30)
		want = g.slowLines()
		require.Equal(t, want, g.lines(c))
		require.Less(t, len(g.opened), sessions*2/3, "those with the answers of sessions that are gone")
		require.LessOrEqual(t, len(c.known), len(g.made))

		c.most, c.size, c.known = c.size/2, 0, map[string]cached[account]{} // not all is kept
		for range 2 {
			require.Equal(t, want, g.lines(c))
			require.LessOrEqual(t, c.size, c.most)
		}
		require.Less(t, len(g.opened), len(g.made))
		require.NotEmpty(t, g.opened)
	}
}

// TestStopped: when the reader is gone, no further session is read, and what was read need not be read again.
func TestStopped(t *testing.T) {
	g := newGenerator(t, 1)
	g.grow(100)
	c := NewCosts(g.store, Prices{})
	g.sessions()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read := make(chan struct{}, 1000)
	g.onOpen = func() {
		if read <- struct{}{}; len(read) == 40 {
			cancel()
		}
	}
	_, err := g.text(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, len(read), 40+2*maxAtOnce)
	g.onOpen = nil
	require.Equal(t, g.slowLines(), g.lines(c))
	require.LessOrEqual(t, len(g.opened), 100-40+3*maxAtOnce)
}

// TestOddSessions: what is no session is left out, and names and times of any kind do no harm.
func TestOddSessions(t *testing.T) {
	s := newTestStore(t)
	for name, text := range map[string]string{
		"none":  "no session\n",
		"found": "{\"type\":\"x\"}\n" + `{"type":"session","version":3,"id":"later","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/w"}` + "\n",
		"odd": `{"type":"session","version":3,"id":"odd","timestamp":"never","cwd":"/w\ud800\n<&>"}` + "\n" +
			`{"type":"message","id":"a","timestamp":-1,"message":{"role":"assistant","content":[],"usage":{"input":1e400,"output":1e300}}}` + "\n",
		"future": `{"type":"session","version":3,"id":"future","timestamp":1e300}` + "\n" +
			`{"type":"message","id":"a","timestamp":8.64e15,"message":{"role":"assistant","content":[],"model":"\ud800"}}` + "\n",
	} {
		s.put("p/"+name+".jsonl", text)
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
	s := newGenerator(t, 1)
	s.grow(20)
	sessions := s.sessions()
	memory := budget.New(budget.Min)
	others, hold := memory.Hold(), memory.Hold()
	require.NoError(t, others.Resize(memory.Limit()-100))
	_, err := NewCosts(s.store, Prices{}).Lines(context.Background(), sessions, &hold)
	require.ErrorIs(t, err, budget.ErrNoMemory)
	others.Close()
	_, err = NewCosts(s.store, Prices{}).Lines(context.Background(), sessions, &hold)
	require.NoError(t, err)
	require.Zero(t, memory.Held())
}

func TestStatsWords(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 999.6: "1.0k", 9949: "9.9k", 12_345: "12k", 999_500: "1.0M", 2e9: "2.0G", 3e13: "30000G"} {
		require.Equal(t, want, Short(n))
	}
	require.Equal(t, "a/b/c", (&Stats{by: []string{byCWD}}).cut(0, "a/b/c", 4))
	require.Equal(t, "0198a000-01 A tit…", (&Stats{by: []string{bySession}}).cut(0, "0198a000-01 A title", 4))
	require.Equal(t, "0198a000-01", (&Stats{by: []string{bySession}}).cut(0, "0198a000-01", 4))
	require.Equal(t, "A t…", (&Stats{by: []string{byTool}}).cut(0, "A tool", 4))
	require.Equal(t, "…b/c", shortened("a/b/c", 4, true))
	cuts := &Stats{by: []string{byModel}}
	names := [][]string{{"claude-opus-4-5"}, {"claude-opus-4-6"}, {"claude-opus-4-5-20251101"}, {"claude-opus-4-5"}}
	require.Equal(t, 15, cuts.distinct(names, 0, 10), "claude-opus-4-5 and claude-opus-4-…")
	require.Equal(t, 10, cuts.distinct(names[:1], 0, 10))
	rows := [][]string{{"model"}, {"anthropic/claude-opus-4-5"}, {"openrouter/google/gemini"}, {"a/gpt"}, {"b/gpt"}, {"(subagents)"}}
	dropProviders(rows, 0)
	require.Equal(t, [][]string{{"model"}, {"claude-opus-4-5"}, {"gemini"}, {"a/gpt"}, {"b/gpt"}, {"(subagents)"}}, rows)
	require.Equal(t, "██▌", drawBar(2.5, []string{"█", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}))
	require.Equal(t, "###", drawBar(2.5, []string{"#"}))
}

// TestOddSums: a sum that overflows or is below 0, as hostile files have, has no bar.
func TestOddSums(t *testing.T) {
	for _, odd := range []amount{-5, amount(math.Inf(1)), amount(math.NaN())} {
		stats, err := NewStats(byModel)
		require.NoError(t, err)
		for model, tokens := range map[string]amount{"a/a": 1, "b/b": odd} {
			session := listing.NewInfo("w/s.jsonl", storage.Stat{}, "/w")
			stats.Add(&Row{Session: session, Model: model, Sum: &Sum{TotalTokens: tokens}}, "")
		}
		require.Contains(t, string(stats.Table(TableWidth, []string{"#"}, false)), "b/b")
	}
}

// TestRacyTimes: a session that changed within a tick of the clock of file times is counted again, and of one that may change
// without a sign each answer is read whole, since that has a checksum.
func TestRacyTimes(t *testing.T) {
	text := func(tokens int) []byte {
		usage := fmt.Sprintf(`{"input":%d,"output":1,"totalTokens":%d}`, tokens, tokens+1)
		return []byte(sessiontest.Header + answer(1, "a", "m", usage))
	}
	for _, racy := range []bool{true, false} {
		mem := memory.New()
		store := sessioncore.NewStore(&storagetest.Stopped{Storage: mem, At: storagetest.Ticking(racy)})
		t.Cleanup(store.Close)
		costs, list := NewCosts(store, ListPrices), listing.New(store, "/agent/sessions")
		counted := func(tokens int) string {
			require.NoError(t, mem.WriteFile("p/s.jsonl", text(tokens)))
			sessions, err := list.Sessions(t.Context())
			require.NoError(t, err)
			hold := budget.New(budget.Default).Hold()
			lines, err := costs.Lines(t.Context(), sessions.All(), &hold)
			require.NoError(t, err)
			return string(lines)
		}
		require.Contains(t, counted(10), `"input":10,`)
		want := map[bool]int{true: 20, false: 10}[racy]
		require.Contains(t, counted(20), fmt.Sprintf(`"input":%d,`, want), "racy: %v", racy)
		answers := readAnswers(t.Context(), sessiontest.Snapshot(t, store.Session("p/s.jsonl")), []sessioncore.Entry{0})
		require.Equal(t, racy, answers[0] == nil)
	}
}

// TestLargestCopy: of copies of an answer the one with the most tokens counts, in whichever session it stands.
func TestLargestCopy(t *testing.T) {
	small := answer(1, "a", "anthropic/claude-opus-4-5", `{"input":10,"output":1,"cacheRead":100}`)
	large := answer(1, "a", "anthropic/claude-opus-4-5", `{"input":10,"output":401,"cacheRead":100}`)
	none := answer(1, "a", "anthropic/claude-opus-4-5", `{"input":0}`)
	for _, texts := range [][3]string{{small, large, none}, {none, small, large}, {large, none, small}, {none, large, small}} {
		s := newTestStore(t)
		head := `{"type":"session","version":3,"id":"%s","timestamp":"2026-01-05T08:00:00.000Z","cwd":"/w"}` + "\n"
		names := []string{"p/s.jsonl", "p/s/subagents/x.jsonl", "p/s/subagents/y.jsonl"}
		for i, text := range texts {
			s.put(names[i], fmt.Sprintf(head, names[i])+text)
		}
		costs := NewCosts(s.store, ListPrices)
		for range 2 { // the second time of what is known
			lines := s.lines(costs)
			require.Len(t, lines, 1)
			for _, sum := range lines {
				require.EqualValues(t, 1, sum.AssistantMessages)
				require.EqualValues(t, []amount{10, 401, 100, 511}, []amount{sum.Input, sum.Output, sum.CacheRead, sum.TotalTokens})
				require.InEpsilon(t, 10*5e-6+401*25e-6+100*0.5e-6, sum.Cost.Total.Float(), 1e-12)
				require.Equal(t, sum.Cost.Total, sum.Listed)
				require.Zero(t, sum.Unpriced)
			}
		}
		s.put(names[2], fmt.Sprintf(head, names[2])+strings.Replace(large, "401", "801", 1))
		for _, sum := range s.lines(costs) {
			require.EqualValues(t, 801, sum.Output)
		}
		s.put(names[0], fmt.Sprintf(head, names[0])+strings.Replace(large, "401", "901", 1))
		for _, sum := range s.lines(costs) {
			require.EqualValues(t, 901, sum.Output)
		}
	}
}

// TestNamesBesidePaths: a path is never cut, so that the names beside it have only the room that it leaves.
func TestNamesBesidePaths(t *testing.T) {
	s := &Stats{by: []string{byModel, byCWD}}
	rows := [][]string{{"claude-sonnet-4-5-20250929", "/home/dev/a-long-name"}, {"gpt-5", "/srv"}}
	s.cutNames(rows, 36)
	require.Equal(t, [][]string{{"claude-sonnet-…", "/home/dev/a-long-name"}, {"gpt-5", "/srv"}}, rows)
}

// TestStacked: on a terminal without room for a line, its names stand above its numbers, and no path or id is cut.
func TestStacked(t *testing.T) {
	s := &Stats{by: []string{bySession, byCWD}}
	sums := &group{id: "019d3d96-6b66-7996-8ead-42aae5653abc", labels: []string{"An hour late, a hand too high", "/home/dev/a-long-name"}}
	rows := s.rows([]*group{sums}, 40)
	require.Greater(t, lineWidth(rows), 80)
	var out bytes.Buffer
	s.writeStacked(&out, rows, 40)
	require.Equal(t, `
session
cwd
  sessions  answers  tokens   cost
019d3d96-6b66-7996-8ead-42aae5653abc
An hour late, a hand too high
/home/dev/a-long-name
         0        0       0  $0.00
total
         0        0       0  $0.00
`[1:], out.String())
}
