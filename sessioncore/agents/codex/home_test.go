package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
)

// home is a ~/.codex and its sessions.
type home struct{ *agentstest.Home }

func newHome(t testing.TB) *home { return &home{agentstest.New(t, "codex")} }

const day, days = "2026-03-30", "sessions/2026/03/30"

// rolloutID returns the id of the nth thread, and name the name of its rollout.
func rolloutID(n int) string { return fmt.Sprintf("0195e5d0-7e0b-7aaa-8bbb-%012d", n) }

func name(n int) string {
	return fmt.Sprintf("rollout-2026-03-30T07-%02d-00-%s.jsonl", n, rolloutID(n))
}

// write writes the rollout of the nth thread.
func (h *home) write(n int, lines ...string) { h.Put(filepath.Join(days, name(n)), lines...) }

// read returns the session of the nth thread.
func (h *home) read(n int) string { return h.Read(day + "/" + name(n)) }

// header returns the header of the nth thread's session.
func (h *home) header(n int) (header struct{ ID, Title, ParentSession string }) {
	first, _, _ := strings.Cut(h.read(n), "\n")
	require.NoError(h.T, json.Unmarshal([]byte(first), &header))
	return header
}

// metaOf returns the session_meta of the nth thread, with more members.
func metaOf(n int, more string) string {
	return line("session_meta", fmt.Sprintf(`"id":%q,"timestamp":"2026-03-30T07:%02d:00.000Z","cwd":"/w"%s`, rolloutID(n), n, more))
}

// at returns lines with the time s seconds and ms milliseconds after the others'.
func at(s, ms int, lines ...string) (moved []string) {
	for i, line := range lines {
		moved = append(moved, strings.Replace(line, "07:13:41.000Z", fmt.Sprintf("07:14:%02d.%03dZ", s, ms+i), 1))
	}
	return moved
}

// apart returns lines each two seconds after the one before.
func apart(s int, lines ...string) (moved []string) {
	for i, line := range lines {
		moved = append(moved, at(s+2*i, 0, line)...)
	}
	return moved
}

func TestTitles(t *testing.T) {
	index := func(n int, title string) string {
		return fmt.Sprintf(`{"id":%q,"thread_name":%q,"updated_at":"2026-03-30T07:13:41Z"}`, rolloutID(n), title)
	}
	renamed := line("event_msg", `"type":"thread_name_updated","thread_name":"Renamed"`)
	for name, c := range map[string]struct {
		index, lines []string
		want         string
	}{
		"that of the list, and of several the last": {
			[]string{index(1, "First"), index(2, "Other"), index(1, "Second"), `{"id":"torn`}, []string{user("hello"), renamed}, "Second",
		},
		"that of an event":           {nil, []string{user("hello"), renamed}, "Renamed"},
		"what the person said first": {nil, []string{user("<environment_context>x"), user("  hello\nthere"), user("more")}, "hello"},
		"a request in another part, without the tags of an image": {nil,
			[]string{line("response_item", `"type":"message","role":"user","content":[{"text":"<image>"},{"text":"# Context"},`+
				`{"text":"## My request for Codex:\n"},{"text":"count"}]`)}, "count"},
		"that of a list whose last one is empty": {[]string{index(1, "First"), index(1, " ")}, []string{user("hello")}, "First"},
		"of a rollout without an envelope, whose first line is missing": {nil,
			[]string{`{"type":"message","role":"user","content":[{"type":"input_text","text":"beans"}]}`}, "beans"},
		"a long first message is cut": {nil, []string{user(strings.Repeat("é", 200))}, strings.Repeat("é", 100) + "…"},
		"none":                        {nil, []string{answered("hi")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.write(1, append([]string{metaOf(1, "")}, c.lines...)...)
			if c.index != nil {
				h.Put(titlesName, c.index...)
			}
			require.Equal(t, c.want, h.header(1).Title)
			h.Put(titlesName, index(1, "Later"))
			h.write(1, append(c.lines, metaOf(1, ""), user("more"))...)
			require.Equal(t, "Later", h.header(1).Title)
		})
	}
	h := newHome(t)
	h.Put(titlesName, index(1, "Thread"))
	h.write(2, metaOf(1, ""), user("one"))
	require.Equal(t, "Thread", h.header(2).Title, "a thread that was reverted goes on in a file with another id")
}

// cost is the cost of an answer, by its id and time: those of a copy are the same. A session without texts says the same.
func (h *home) cost(n int) map[string]int {
	bill := &home{&agentstest.Home{Files: h.Facts().(*agents.Files), T: h.T}}
	all := costIn(h.T, h.read(n))
	require.Equal(h.T, all, costIn(h.T, bill.read(n)))
	return all
}

func costIn(t testing.TB, session string) map[string]int {
	all := map[string]int{}
	for line := range strings.Lines(session) {
		var e struct {
			ID, Timestamp string
			Message       struct{ Usage struct{ TotalTokens int } }
		}
		if line[0] == '"' { // a problem
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Message.Usage.TotalTokens > 0 {
			all[e.ID+" "+e.Timestamp] = e.Message.Usage.TotalTokens
		}
	}
	return all
}

// TestForks: what a fork or a subagent has copied from another rollout counts once, and its own counts.
func TestForks(t *testing.T) {
	said := []string{
		user("one"), answered("1"), counted(100, 90, 0, 10), user("two"), call("c1"), counted(300, 190, 0, 10), output("c1", "x"),
		answered("2"), counted(600, 290, 0, 10),
	}
	own := apart(20, user("mine"), answered("3"), counted(1000, 390, 0, 10))
	parent := append([]string{metaOf(1, "")}, apart(0, said...)...)
	forked := at(14, 999, metaOf(2, `,"forked_from_id":"`+rolloutID(1)+`"`))[0]
	for name, c := range map[string]struct {
		parent, child []string
		total, own    int
	}{
		"written again at one moment":       {parent, slices.Concat([]string{forked}, at(15, 0, slices.Concat(parent[:1], said)...), own), 1000, 400},
		"with the times that the lines had": {parent, slices.Concat([]string{forked}, parent, own), 1000, 400},
		"up to an earlier turn":             {parent, slices.Concat([]string{forked}, at(15, 0, slices.Concat(parent[:1], said[:3])...), own), 500, 400},
		"with lines left out": {parent,
			slices.Concat([]string{forked}, at(15, 0, slices.Concat(parent[:1], said[:1], said[2:4], said[5:])...), own), 1000, 400},
		"by a subagent": {parent,
			slices.Concat([]string{metaOf(2, `,"source":{"subagent":{"thread_spawn":{"parent_thread_id":"`+rolloutID(1)+`"}}}`)},
				at(15, 0, slices.Concat(parent[:1], said)...), own), 1000, 400},
		"nothing, by a subagent": {parent,
			slices.Concat([]string{metaOf(2, `,"source":{"subagent":{"thread_spawn":{"parent_thread_id":"`+rolloutID(1)+`"}}}`)}, own), 400, 400},
		"from a rollout that is gone": {nil, slices.Concat([]string{forked}, at(15, 0, slices.Concat(parent[:1], said)...), own), 400, 400},
		"by a program that writes lines otherwise": {parent,
			slices.Concat([]string{forked}, at(15, 0, slices.Concat([]string{metaOf(1, `,"more":1`)}, said)...), own), 400, 400},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			before := map[string]int{}
			if c.parent != nil {
				h.write(1, c.parent...)
				before = h.cost(1)
			}
			h.write(2, c.child...)
			total, own := 0, 0
			for key, n := range h.cost(2) {
				total += n
				if _, copied := before[key]; !copied {
					own += n
				}
			}
			require.Equal(t, c.total, total)
			require.Equal(t, c.own, own)
			require.Equal(t, rolloutID(1), h.header(2).ParentSession)
			outline := agentstest.Outline(t, h.read(2))
			require.Contains(t, outline[len(outline)-1], `"3"`)
			if c.parent != nil {
				h.write(1, append(c.parent, user("on"), answered("2"), counted(900, 290, 0, 10))...)
				require.Equal(t, outline, agentstest.Outline(t, h.read(2)))
			}
		})
	}
}

// total returns the tokens of all sessions up to the nth thread's, each answer once.
func (h *home) total(n int) (sum int) {
	all := map[string]int{}
	for i := range n {
		maps.Copy(all, h.cost(i+1))
	}
	for _, tokens := range all {
		sum += tokens
	}
	return sum
}

// TestForksOfForks: an answer counts once, also in copies of copies, and where a rollout goes on from copies.
func TestForksOfForks(t *testing.T) {
	h := newHome(t)
	parent := append([]string{metaOf(1, "")}, apart(0, user("one"), answered("1"), counted(100, 90, 0, 10))...)
	fork := func(n int, of []string, left ...string) []string {
		own := apart(20+n, user("on"), answered("2"), counted(100*n, 90, 0, 10))
		meta := metaOf(n, fmt.Sprintf(`,"forked_from_id":%q`, rolloutID(n-1)))
		return slices.Concat(at(15, 0, slices.DeleteFunc(slices.Concat([]string{meta}, of), func(line string) bool {
			return slices.Contains(left, line)
		})...), own)
	}
	second := fork(2, parent)
	third := fork(3, second)
	h.write(1, parent...)
	h.write(2, second...)
	h.write(3, third...)
	h.write(4, fork(4, third, third[1], third[2])...) // without the session_meta of the others
	h.write(5, append([]string{metaOf(5, based(3, 9, third...))}, apart(40, answered("5"), counted(500, 90, 0, 10))...)...)
	require.Equal(t, 500, h.total(5))
	require.Len(t, h.cost(4), 4)
	require.Len(t, h.cost(5), 4)
}

// TestCircleCost: an answer counts once, also of two rollouts that go on from one another.
func TestCircleCost(t *testing.T) {
	h := newHome(t)
	of := func(n, other int) []string {
		base := fmt.Sprintf(`,"history_base":{"thread_id":%q,"end_byte_offset":9000}`, rolloutID(other))
		return append([]string{metaOf(n, base)}, apart(10*n, user("on"), answered("1"), counted(100*n, 90, 0, 10))...)
	}
	h.write(1, of(1, 2)...)
	h.write(2, of(2, 1)...)
	h.write(3, of(3, 1)...)
	for n := 1; n <= 3; n++ {
		require.Len(t, h.cost(n), 1)
	}
	require.Equal(t, 300, h.total(3))
}

// based returns the history_base up to the end of some lines.
func based(n int, ordinal int, lines ...string) string {
	return fmt.Sprintf(`,"history_base":{"thread_id":%q,"end_ordinal_exclusive":%d,"end_byte_offset":%d}`, rolloutID(n), ordinal,
		len(strings.Join(append(lines, ""), "\n")))
}

// TestJoined: a rollout that goes on from another one is shown with what it goes on from, each entry with where it is from.
func TestJoined(t *testing.T) {
	h := newHome(t)
	first := append([]string{metaOf(1, "")},
		apart(0, user("one"), answered("1"), counted(100, 90, 0, 10), user("two"), answered("2"), counted(300, 190, 0, 10))...)
	second := append([]string{metaOf(2, based(1, 4, first[:4]...))}, apart(20, user("three"), answered("3"), counted(500, 190, 0, 10), user("four"))...)
	third := append([]string{metaOf(3, based(2, 8, second[:4]...))}, apart(40, user("five"), answered("5"), counted(900, 390, 0, 10))...)
	h.write(1, first...)
	h.write(2, second...)
	h.write(3, third...)
	require.Equal(t, []string{
		"session " + rolloutID(3) + " one", `l2 <  message user "one" [2]`, `l3 < l2 message assistant "1" stop 90+10 [3]`,
		`l5 < l3 message user "three" [2]`, `l6 < l5 message assistant "3" stop 190+10 [3]`,
		`l8 < l6 message user "five" [2]`, `l9 < l8 message assistant "5" stop 390+10 [3]`,
	}, agentstest.Outline(t, h.read(3)))
	require.Equal(t, rolloutID(2), h.header(3).ParentSession)
	whole := h.read(3)
	for n, text := range map[int]string{1: "one", 2: "three"} {
		require.Contains(t, whole, fmt.Sprintf(`"text":%q}],"timestamp"`, text))
		require.Equal(t, 2, strings.Count(whole, fmt.Sprintf(`"origin":{"path":%q,"line":`, filepath.Join(h.Dir, days, name(n)))))
	}
	of := func(n int) (all []string) {
		for key := range h.cost(n) {
			all = append(all, key)
		}
		slices.Sort(all)
		return all
	}
	require.Subset(t, of(3), of(2))
	require.Len(t, of(3), 3)
	for step := range 3 { // it grows, and what it goes on from does too
		more := append(slices.Clone(third), at(50, 0, []string{user("six"), answered("6"), user("seven")}[:step+1]...)...)
		h.write(1, append(first, user("elsewhere"))...)
		h.write(3, more...)
		grown := h.read(3)
		require.True(t, strings.HasPrefix(grown, whole) || step == 0)
		require.Equal(t, (&home{h.Fresh()}).read(3), grown)
	}
	s := sessioncore.NewStore(h.Files).Session(day + "/" + name(3))
	snap, err := s.Acquire(context.Background())
	require.NoError(t, err)
	require.Equal(t, 9, snap.Len())
	snap.Release()
}
