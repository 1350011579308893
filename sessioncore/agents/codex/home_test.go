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

// at returns lines with a time of the next minute, the first one at second s and millisecond ms, each other a millisecond
// later.
func at(s, ms int, lines ...string) (moved []string) {
	for i, line := range lines {
		time := fmt.Sprintf("07:14:%02d.%03dZ", s, ms+i)
		moved = append(moved, strings.Replace(line, "07:13:41.000Z", time, 1))
	}
	return moved
}

// apart returns lines with a time of the next minute, the first one at second s, each other two seconds later.
func apart(s int, lines ...string) (moved []string) {
	for i, line := range lines {
		moved = append(moved, at(s+2*i, 0, line)...)
	}
	return moved
}

// TestTitles: the title is that of the program's list, else that of an event, else the person's first words.
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

// cost returns the tokens of the answers of the nth thread's session, by their ids and times: those of a copy are the
// same. A session without texts must tell the same.
func (h *home) cost(n int) map[string]int {
	bill := &home{&agentstest.Home{Files: h.Facts().(*agents.Files), T: h.T}}
	all := costIn(h.T, h.read(n))
	require.Equal(h.T, all, costIn(h.T, bill.read(n)))
	return all
}

// costIn is cost for the text of a session.
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

// forkCase is a fork or a subagent of thread 1.
type forkCase struct {
	parent []string // the lines of thread 1, nil if its rollout is gone
	child  []string // those of thread 2
	total  int      // the tokens of thread 2
	own    int      // those of its own answers
}

// check writes both rollouts, and fails unless the child's answers count once.
func (c *forkCase) check(t *testing.T) {
	h := newHome(t)
	ofParent := map[string]int{}
	if c.parent != nil {
		h.write(1, c.parent...)
		ofParent = h.cost(1)
	}
	h.write(2, c.child...)
	total := 0
	own := 0
	for key, n := range h.cost(2) {
		total += n
		_, isCopy := ofParent[key]
		if !isCopy {
			own += n
		}
	}
	require.Equal(t, c.total, total)
	require.Equal(t, c.own, own)
	require.Equal(t, rolloutID(1), h.header(2).ParentSession)
	outline := agentstest.Outline(t, h.read(2))
	require.Contains(t, outline[len(outline)-1], `"3"`)
	if c.parent != nil { // a parent that goes on changes nothing
		h.write(1, append(c.parent, user("on"), answered("2"), counted(900, 290, 0, 10))...)
		require.Equal(t, outline, agentstest.Outline(t, h.read(2)))
	}
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
	spawned := metaOf(2, `,"source":{"subagent":{"thread_spawn":{"parent_thread_id":"`+rolloutID(1)+`"}}}`)
	// copied returns a child with lines that were copied at one moment.
	copied := func(meta string, copies ...[]string) []string {
		return slices.Concat([]string{meta}, at(15, 0, slices.Concat(copies...)...), own)
	}
	firstMeta := parent[:1]
	otherMeta := []string{metaOf(1, `,"more":1`)}
	for name, c := range map[string]forkCase{
		"written again at one moment": {
			parent: parent,
			child:  copied(forked, firstMeta, said),
			total:  1000,
			own:    400,
		},
		"with the times that the lines had": {
			parent: parent,
			child:  slices.Concat([]string{forked}, parent, own),
			total:  1000,
			own:    400,
		},
		"up to an earlier turn": {
			parent: parent,
			child:  copied(forked, firstMeta, said[:3]),
			total:  500,
			own:    400,
		},
		"with lines left out": {
			parent: parent,
			child:  copied(forked, firstMeta, said[:1], said[2:4], said[5:]),
			total:  1000,
			own:    400,
		},
		"by a subagent": {
			parent: parent,
			child:  copied(spawned, firstMeta, said),
			total:  1000,
			own:    400,
		},
		"nothing, by a subagent": {
			parent: parent,
			child:  copied(spawned),
			total:  400,
			own:    400,
		},
		"from a rollout that is gone": {
			child: copied(forked, firstMeta, said),
			total: 400,
			own:   400,
		},
		"by a program that writes lines otherwise": {
			parent: parent,
			child:  copied(forked, otherMeta, said),
			total:  400,
			own:    400,
		},
	} {
		t.Run(name, c.check)
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
	// fork returns thread n as a fork of the thread before, whose lines are of, without the lines left out.
	fork := func(n int, of []string, leftOut ...string) []string {
		meta := metaOf(n, fmt.Sprintf(`,"forked_from_id":%q`, rolloutID(n-1)))
		copies := slices.Concat([]string{meta}, of)
		copies = slices.DeleteFunc(copies, func(line string) bool {
			return slices.Contains(leftOut, line)
		})
		own := apart(20+n, user("on"), answered("2"), counted(100*n, 90, 0, 10))
		return slices.Concat(at(15, 0, copies...), own)
	}
	second := fork(2, parent)
	third := fork(3, second)
	h.write(1, parent...)
	h.write(2, second...)
	h.write(3, third...)
	h.write(4, fork(4, third, third[1], third[2])...) // without the session_meta of the others
	basedOnThird := []string{metaOf(5, based(3, 9, third...))}
	h.write(5, append(basedOnThird, apart(40, answered("5"), counted(500, 90, 0, 10))...)...)
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

// based returns the history_base, a member of a session_meta, up to the end of some lines of the nth thread.
func based(n int, ordinal int, lines ...string) string {
	size := 0
	for _, line := range lines {
		size += len(line + "\n")
	}
	return fmt.Sprintf(`,"history_base":{"thread_id":%q,"end_ordinal_exclusive":%d,"end_byte_offset":%d}`,
		rolloutID(n), ordinal, size)
}

// joinedLines are the lines of three rollouts, each of which goes on from a part of the one before.
type joinedLines struct{ first, second, third []string }

// newJoined writes three such rollouts, of the threads 1 to 3.
func newJoined(h *home) joinedLines {
	turn := func(prompt, answer string, tokens, input int) []string {
		return []string{user(prompt), answered(answer), counted(tokens, input, 0, 10)}
	}
	firstTurns := slices.Concat(turn("one", "1", 100, 90), turn("two", "2", 300, 190))
	secondTurns := append(turn("three", "3", 500, 190), user("four"))
	var j joinedLines
	j.first = append([]string{metaOf(1, "")}, apart(0, firstTurns...)...)
	j.second = append([]string{metaOf(2, based(1, 4, j.first[:4]...))}, apart(20, secondTurns...)...)
	j.third = append([]string{metaOf(3, based(2, 8, j.second[:4]...))}, apart(40, turn("five", "5", 900, 390)...)...)
	h.write(1, j.first...)
	h.write(2, j.second...)
	h.write(3, j.third...)
	return j
}

// TestJoined: a rollout that goes on from another one is shown with what it goes on from, each entry with where it is
// from.
func TestJoined(t *testing.T) {
	h := newHome(t)
	newJoined(h)
	whole := h.read(3)
	require.Equal(t, []string{
		"session " + rolloutID(3) + " one",
		`l2 <  message user "one" [2]`,
		`l3 < l2 message assistant "1" stop 90+10 [3]`,
		`l5 < l3 message user "three" [2]`,
		`l6 < l5 message assistant "3" stop 190+10 [3]`,
		`l8 < l6 message user "five" [2]`,
		`l9 < l8 message assistant "5" stop 390+10 [3]`,
	}, agentstest.Outline(t, whole))
	require.Equal(t, rolloutID(2), h.header(3).ParentSession)
	for n, text := range map[int]string{1: "one", 2: "three"} {
		require.Contains(t, whole, fmt.Sprintf(`"text":%q}],"timestamp"`, text))
		file := filepath.Join(h.Dir, days, name(n))
		origin := fmt.Sprintf(`"origin":{"path":%q,"line":`, file)
		require.Equal(t, 2, strings.Count(whole, origin))
	}
	answersOf := func(n int) []string { return slices.Sorted(maps.Keys(h.cost(n))) }
	require.Subset(t, answersOf(3), answersOf(2))
	require.Len(t, answersOf(3), 3)
}

// TestJoinedGrows: such a rollout grows, and what it goes on from does too.
func TestJoinedGrows(t *testing.T) {
	h := newHome(t)
	lines := newJoined(h)
	whole := h.read(3)
	more := []string{user("six"), answered("6"), user("seven")}
	for step := range more {
		h.write(1, append(lines.first, user("elsewhere"))...)
		h.write(3, slices.Concat(lines.third, at(50, 0, more[:step+1]...))...)
		grown := h.read(3)
		require.True(t, strings.HasPrefix(grown, whole))
		fresh := &home{h.Fresh()}
		require.Equal(t, fresh.read(3), grown)
	}
	s := sessioncore.NewStore(h.Files).Session(day + "/" + name(3))
	snap, err := s.Acquire(context.Background())
	require.NoError(t, err)
	require.Equal(t, 9, snap.Len())
	snap.Release()
}
