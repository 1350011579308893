package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// task returns a block with a call of a subagent.
func task(id, prompt string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Task","input":{"prompt":%q}}`, id, prompt)
}

// TestSidechains: the subagents whose records older clients wrote into the session's file are sessions of their own,
// to which the results of the calls lead.
func TestSidechains(t *testing.T) {
	p := newProjects(t)
	p.put(session,
		user("u1", "", "go"),
		says("a1", "u1", "M", task("c1", "look")+","+task("c2", "find"), 1),
		side(user("x1", "", "look")),
		side(user("y1", "", "find")),
		side(says("x2", "x1", "X", textBlock("seen"), 2)),
		side(says("y2", "y1", "Y", textBlock("found"), 3)),
		result("r1", "a1", "c1", "seen"),
		result("r2", "a1", "c2", "found"),
		says("a2", "r2", "N", textBlock("done"), 4),
	)
	require.Equal(t, []string{"s", "s.jsonl"}, p.Names("-w"))
	require.Equal(t, []string{"subagents"}, p.Names("-w/s"))
	require.Equal(t, []string{"sidechain-x1.jsonl", "sidechain-y1.jsonl"}, p.Names("-w/s/subagents"))
	require.Equal(t, []string{"session sidechain-y1", `y1 <  message user "find" [4]`, `y2 < y1 message assistant "found" stop 15+3 [6]`},
		p.Outline("-w/s/subagents/sidechain-y1.jsonl"))
	require.Len(t, p.Outline(session), 1+5)
	whole := p.Read(session)
	require.Contains(t, whole, `"origin":{"line":7,"session":"artifacts/subagents/sidechain-x1"}`)
	require.Contains(t, whole, `"origin":{"line":8,"session":"artifacts/subagents/sidechain-y1"}`)
	raw := storagetest.Read(t, p.Files.Files, "-w/s/subagents/sidechain-x1.jsonl")
	require.Contains(t, raw, `"go"`, "its lines are those of the session's file")
	_, err := p.Stat("-w/s/subagents/sidechain-u1.jsonl")
	require.True(t, storage.IsMissing(err))
}

// TestSidechainsOfVersions: only the files of the oldest clients are searched for subagents.
func TestSidechainsOfVersions(t *testing.T) {
	p := newProjects(t)
	prompt := user("u1", "", "go")
	subagents := side(user("x1", "", "look"))
	p.put("-w/new.jsonl", strings.Replace(prompt, `{`, `{"version":"2.1.38",`, 1), subagents)
	_, err := p.Stat("-w/new")
	require.True(t, storage.IsMissing(err), "newer clients write them elsewhere")
	spaced := strings.Replace(subagents, ":true", ": true", 1)
	p.put("-w/old.jsonl", strings.Replace(prompt, `{`, `{"version": "1.0.24", `, 1), spaced)
	require.Equal(t, []string{"sidechain-x1.jsonl"}, p.Names("-w/old/subagents"))
}

// TestSubagents: subagents' files are shown with their session, wherever the client put them; one without its session
// stays.
func TestSubagents(t *testing.T) {
	p := newProjects(t)
	agent := side(user("x1", "", "look"))
	ofSession := func(id string) string {
		return strings.Replace(agent, `"sessionId":"s"`, `"sessionId":"`+id+`"`, 1)
	}
	p.put(session,
		user("u1", "", "go"),
		says("a1", "u1", "M", task("c1", "look"), 1),
		withMembers(result("r1", "a1", "c1", "seen"), `"toolUseResult":{"agentId":"b2"}`),
	)
	p.put("-w/s/subagents/agent-a1.jsonl", agent, side(says("x2", "x1", "X", textBlock("seen"), 2)))
	p.put("-w/s/subagents/agent-acompact-1.jsonl", agent)
	p.put("-w/s/tool-results/t.jsonl", "{}")
	p.put("-w/agent-b2.jsonl", agent)
	p.put("-w/agent-lost.jsonl", ofSession("gone"))
	p.put("-w/agent-odd.jsonl", ofSession("../s"))
	require.Equal(t, []string{"agent-lost.jsonl", "agent-odd.jsonl", "s", "s.jsonl"}, p.Names("-w"))
	require.Equal(t, []string{"subagents", "tool-results"}, p.Names("-w/s"))
	require.Equal(t, []string{"agent-a1.jsonl", "agent-acompact-1.jsonl", "agent-b2.jsonl"}, p.Names("-w/s/subagents"))
	for _, name := range []string{"-w/s/subagents/agent-a1.jsonl", "-w/s/subagents/agent-b2.jsonl", "-w/agent-lost.jsonl"} {
		require.Equal(t, `x1 <  message user "look" [1]`, p.Outline(name)[1])
	}
	_, err := p.Open("-w/agent-b2.jsonl")
	require.True(t, storage.IsMissing(err))
	_, err = p.Open("-w/s/subagents")
	require.Error(t, err)
	require.Contains(t, p.Read(session), `"session":"artifacts/subagents/agent-b2"`)
}

// TestSessionComesBack: a subagent is shown with its session as soon as that has a file.
func TestSessionComesBack(t *testing.T) {
	p := newProjects(t)
	agent := side(user("x1", "", "look"))
	p.put("-w/agent-lost.jsonl", strings.Replace(agent, `"sessionId":"s"`, `"sessionId":"gone"`, 1))
	require.Equal(t, []string{"agent-lost.jsonl"}, p.Names("-w"))
	p.put("-w/gone.jsonl", user("u1", "", "back"))
	require.Equal(t, []string{"gone", "gone.jsonl"}, p.Names("-w"))
	require.Equal(t, []string{"agent-lost.jsonl"}, p.Names("-w/gone/subagents"))
}

// TestForkedSubagent: a subagent that is a fork of its caller begins with the caller's answer, whose tokens the
// caller has.
func TestForkedSubagent(t *testing.T) {
	p := newProjects(t)
	p.put(session, user("u1", "", "go"))
	boilerplate := `},{"type":"text","text":"<fork-boilerplate>\nFork."}]}`
	fork := strings.Replace(result("x2", "x1", "c1", "you are it"), `}]}`, boilerplate, 1)
	const name = "-w/s/subagents/agent-c3.jsonl"
	p.put(name,
		side(says("x1", "", "M", callBlock("c1"), 1)),
		side(fork),
		side(says("x3", "x2", "F", textBlock("on"), 2)),
	)
	require.Equal(t, []string{
		`x1 <  message assistant c1:Bash{"command":"ls"} toolUse [1]`,
		`x2 < x1 message toolResult Bash "you are it" [2]`,
		`x2.2 < x2 message user "<fork-boilerplate>\nFork." [2]`,
		`x3 < x2.2 message assistant "on" stop 15+2 [3]`,
	}, p.Outline(name)[1:])
}

// TestLost: subagents whose session is gone are sessions of their own, wherever they lie below its directory. They
// can be opened by the old path, and go back to it with the session.
func TestLost(t *testing.T) {
	const (
		gone  = "11111111-2222-4333-8444-555555555555"
		other = "22222222-2222-4333-8444-555555555555"
	)
	p := newProjects(t)
	agent := side(user("x1", "", "look"))
	p.put("-w/"+gone+"/subagents/agent-a1.jsonl", agent, side(says("x2", "x1", "X", textBlock("seen"), 2)))
	p.put("-w/"+gone+"/subagents/agent-a1.meta.json", "{}")
	p.put("-w/"+gone+"/subagents/workflows/wf_1/agent-b2.jsonl", agent)
	p.put("-w/"+gone+"/subagents/workflows/wf_1/journal.jsonl", "{}")
	p.put("-w/"+other+"/subagents/agent-a1.jsonl", agent)
	p.put("-w/"+other+"/subagents/agent-c3.jsonl", agent)
	ofOldClient := side(user("x1", "", "of an old client"))
	p.put("-w/agent-c3.jsonl", strings.Replace(ofOldClient, `"sessionId":"s"`, `"sessionId":"z"`, 1))
	p.put("-w/memory/agent-d4.jsonl", agent)
	p.put(session, user("u1", "", "go"))
	p.put("-w/s/subagents/agent-e5.jsonl", agent)
	sessions := []string{
		"-w/agent-a1-" + other + ".jsonl", // the name is taken
		"-w/agent-a1.jsonl",
		"-w/agent-b2.jsonl",
		"-w/agent-c3-" + other + ".jsonl",
		"-w/agent-c3.jsonl",
		session,
		"-w/s/subagents/agent-e5.jsonl",
	}
	require.Equal(t, sessions, p.Sessions("-w"))
	require.Equal(t, []string{"agent-a1.meta.json", "workflows"}, p.Names("-w/"+gone+"/subagents"))
	require.Equal(t, []string{"session a1", `x1 <  message user "look" [1]`, `x2 < x1 message assistant "seen" stop 15+2 [2]`},
		p.Outline("-w/agent-a1.jsonl"))
	require.Equal(t, "session agent-a1", p.Outline("-w/" + gone + "/subagents/agent-a1.jsonl")[0])
	require.Contains(t, p.Read("-w/agent-c3.jsonl"), "of an old client")
	var found []string
	err := p.List("-w", []string{"agent-a1.jsonl", "agent-no.jsonl", "s.jsonl"}, func(item storage.Item) bool {
		found = append(found, item.Name)
		return true
	})
	require.NoError(t, err)
	require.Equal(t, []string{"agent-a1.jsonl", "s.jsonl"}, found)

	before := storagetest.Stat(t, p, "-w").Token
	p.put("-w/"+gone+"/subagents/workflows/wf_1/agent-f6.jsonl", agent)
	require.NotEqual(t, before, storagetest.Stat(t, p, "-w").Token, "a list looks again")
	require.Contains(t, p.Names("-w"), "agent-f6.jsonl")
	p.put("-w/"+gone+".jsonl", user("u1", "", "back"))
	require.NotContains(t, p.Names("-w"), "agent-b2.jsonl")
	require.Contains(t, p.Names("-w"), "agent-a1.jsonl", "the other one")
	require.Equal(t, []string{"agent-a1.jsonl", "agent-a1.meta.json", "workflows"}, p.Names("-w/"+gone+"/subagents"))
}

// TestAbout: titles, and what a session was forked from.
func TestAbout(t *testing.T) {
	title := func(typ, key, text string) string { return fmt.Sprintf(`{"type":%q,%q:%q}`, typ, key, text) }
	summary := title("summary", "summary", "short")
	made := title("ai-title", "aiTitle", "made")
	custom := title("custom-title", "customTitle", "mine")
	renamed := title("custom-title", "customTitle", "other")
	prompt := user("u1", "", "go")
	fork := withMembers(prompt, `"forkedFrom":{"sessionId":"old","messageUuid":"u1"}`)
	copied := withMembers(prompt, `"session_id":"before"`)
	copyOfOwn := withMembers(prompt, `"session_id":"s"`)
	for _, c := range []struct {
		lines  []string
		title  string
		parent string
	}{
		{lines: []string{prompt}},
		{lines: []string{summary, prompt}, title: "short"},
		{lines: []string{made, prompt, summary}, title: "made"},
		{lines: []string{custom, prompt, made, summary}, title: "mine"},
		{lines: []string{custom, prompt, renamed}, title: "other"},
		{lines: []string{fork, user("u2", "u1", "on")}, parent: "old"},
		{lines: []string{copied, user("u2", "u1", "on")}, parent: "before"},
		{lines: []string{copyOfOwn}},
	} {
		p := newProjects(t)
		p.put(session, c.lines...)
		about := p.about(t, session)
		require.Equal(t, c.title, about.Title, c.lines)
		require.Equal(t, c.parent, about.Parent, c.lines)
	}
}

// TestLongLines: a line of 100 MB is an entry without its long texts, and said; it is not held.
func TestLongLines(t *testing.T) {
	sessiontest.NotUnderRace(t)
	p := newProjects(t)
	image := strings.Repeat("QUJD", 10<<20)
	p.put(session, "no JSON at all", user("u1", "", "hello"),
		rec("user", "u2", "u1", `"message":{"content":[{"type":"text","text":"see \"this\""},`+
			`{"type":"image","source":{"media_type":"image/png","data":"`+image+`"}}]}`),
		user("u3", "u2", "on")+user("u5", "u2", "glued"), strings.Repeat("x", 33<<20))
	sessiontest.AppendTo(t, p.path(session), `{"type":"user","uuid":"u4","parentUuid":"u3","message":{"content":"`+image)
	text := p.Read(session)
	require.Less(t, len(text), 4096, text[max(0, len(text)-2000):])
	var problems []string
	for line := range strings.Lines(text) {
		if line[0] == '"' {
			problems = append(problems, line)
		}
	}
	require.Equal(t, []string{
		"session s", `u1 <  message user "hello" [2]`,
		`u2 < u1 message user "see \"this\"" image image/png [41943040 bytes, in line 3 of the agent's own file] [3]`, `u3 < u2 message user "on" [4]`,
	}, agentstest.Outline(t, text))
	require.Len(t, problems, 5)
	require.Contains(t, problems[0], "line 1, 14 bytes: not JSON")
	require.Contains(t, problems[1], "line 3, 41943")
	require.Contains(t, problems[2], "line 4, 175 bytes: text after the value on its line")
	sessiontest.AppendTo(t, p.path(session), `"}}`+"\n")
	require.Contains(t, p.Read(session), "[41943040 bytes, in line 6")
}

// TestMayHaveChains: lines may have records of subagents, as their key tells.
func TestMayHaveChains(t *testing.T) {
	for _, c := range []struct {
		record string
		want   bool
	}{
		{`{"isSidechain":true}`, true},
		{`{"isSidechain":  true}`, true},
		{`{"isSidechain":false}`, false},
		{`{"isSidechain":false,"x":true}`, false},
		{`{"isSidechain"`, false},
		{``, false},
	} {
		require.Equal(t, c.want, mayHaveChains([]byte(c.record)), c.record)
	}
}
