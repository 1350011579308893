//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"sessionfs/mcp"
	"sessionfs/sessioncore/agents"
	"sessionfs/source"
)

// agentHome makes this test's home one with the sample stores, and goes to their project. Of their sessions those of omp are
// in it, but for a subagent's and one about gauges, and those of Claude Code and Codex are elsewhere.
func agentHome(t *testing.T) (project string) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	require.NoError(t, source.LayOut(home))
	t.Setenv("HOME", home)
	for _, name := range []string{"PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, "")
	}
	for _, a := range agents.All() {
		t.Setenv(strings.TrimSuffix(a.Variable(""), "="), "")
	}
	project = filepath.Join(home, "tidetable")
	t.Chdir(project)
	return project
}

// asked is the answer of a tool.
type asked struct {
	notes, text string
	isError     bool
}

// asker returns a function that calls the tools of a server in the working directory, of the sessions of all directories
// if everywhere is set, and with secrets as they are if unmasked is set. It checks the notice and the size of each answer.
func asker(t *testing.T, everywhere, unmasked bool) func(tool, arguments string) asked {
	t.Helper()
	door, err := newAgentDoor(mcpOptions{everywhere: everywhere, unmasked: unmasked}, io.Discard)
	require.NoError(t, err)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- door.server().Serve(context.Background(), in, out) }()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = toServer.Close()
		require.NoError(t, <-ended)
	})
	return func(tool, arguments string) asked {
		t.Helper()
		r, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: rawJSON(arguments)})
		require.NoError(t, err)
		a := asked{isError: r.IsError}
		size := 0
		for i, c := range r.Content {
			text := c.(*sdk.TextContent).Text
			size += len(text)
			if i == 0 { // our own words
				a.notes = text
			} else {
				a.text += text
			}
		}
		require.True(t, strings.HasPrefix(a.notes, mcp.Notice), a.notes)
		require.LessOrEqual(t, size, mcp.MaxAnswer)
		return a
	}
}

// rawJSON is JSON that is sent as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// writeSession writes a session of omp with prompts, in a working directory.
func writeSession(t *testing.T, id, cwd string, prompts ...string) {
	t.Helper()
	dir := filepath.Join(os.Getenv("HOME"), ".omp/agent/sessions/-made")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	var text strings.Builder
	fmt.Fprintf(&text, "{\"type\":\"session\",\"version\":3,\"id\":%q,\"timestamp\":\"2026-06-01T08:00:00.000Z\",\"cwd\":%q}\n", id, cwd)
	parent := "null"
	for i, prompt := range prompts {
		fmt.Fprintf(&text, `{"type":"message","id":"e%04d","parentId":%s,"timestamp":"2026-06-01T%02d:%02d:%02d.000Z",`+
			`"message":{"role":"user","content":%q}}`+"\n", i, parent, 8+i/3600, i/60%60, i%60, prompt)
		parent = fmt.Sprintf(`"e%04d"`, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(text.String()), 0o600))
}

// TestAgentTools: each tool answers as the command of its name prints it.
func TestAgentTools(t *testing.T) {
	project := agentHome(t)
	text := "package main\n\n// by hand\n"
	require.NoError(t, os.WriteFile(filepath.Join(project, "main.go"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(project, "notes.txt"), []byte("x\n"), 0o600))
	ask := asker(t, false, false)
	for _, c := range []struct{ tool, arguments, want string }{
		{"search", `{"query":"datum high"}`, `(?m)^019d3d96-6b66-7996#902859a2 +omp +2026-03-30 07:38  …: below it at high water`},
		{"search", `{"query":"tide","most":2}`, `^(.*\n){2}$`},
		{"show", `{"id":"019d3d96#902859a2"}`, `(?s)## User .*## Assistant .*902859a2.*not the datum and not the time`},
		{"show", `{"id":"019d3d96#902859a2","around":1}`, `(?s)^[^#]*(## [^#]*){2,3}$`},
		{"show", `{"id":"019D3D96-6b66-7996-8ead-42aae5653abc"}`, `^# An hour late, a hand too high\n`},
		{"touched", `{"path":"main.go"}`, `(?m)^019e17a0-35cf-7412#c27a74df +omp .* edit main\.go, asked: Both, please`},
		{"touched", `{"path":"."}`, `write ics\.go; edit main\.go`},
		{"log", `{"id":"019d3d96"}`, `(?m)^\* .*3a17833e \(leaf\)`},
		{"stats", `{"by":"agent"}`, `(?m)^omp +4 `},
		{"stats", `{"by":"tool","since":"2026-03","until":"2026-03"}`, `(?m)^bash +\d`},
		{"stats", `{"since":"2020-01-01","until":"2020-01-02"}`, `^nothing was used in that time\n$`},
	} {
		r := ask(c.tool, c.arguments)
		require.False(t, r.isError, "%s %s: %s", c.tool, c.arguments, r.text)
		require.Regexp(t, c.want, r.text, "%s %s", c.tool, c.arguments)
		require.NotContains(t, r.text, "\x1b")
	}
	require.Contains(t, ask("search", `{"query":"tide","most":2}`).notes, "There are more hits than these 2: add words, after: or cwd:")
	require.Contains(t, ask("search", `{"query":"nobodysaidthis"}`).notes, "Nothing is found. Take fewer or other words.")
	require.Contains(t, ask("touched", `{"path":"notes.txt"}`).notes, "no session names "+project+"/notes.txt")
	require.Contains(t, ask("blame", `{"path":"notes.txt"}`).notes, "No line is an agent's: no session names "+project+"/notes.txt")
}

// TestAgentBlame: ranges of lines with their prompts, and no text of the file.
func TestAgentBlame(t *testing.T) {
	project := agentHome(t)
	dir := filepath.Join(os.Getenv("HOME"), ".omp/agent/sessions/-made")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	lines := []string{
		`{"type":"session","version":3,"id":"b1a3e000","timestamp":"2026-06-01T08:00:00.000Z","cwd":"` + project + `"}`,
		`{"type":"message","id":"u1","parentId":null,"timestamp":"2026-06-01T08:00:01.000Z","message":{"role":"user","content":"Write the list."}}`,
		`{"type":"message","id":"a1","parentId":"u1","timestamp":"2026-06-01T08:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"write","arguments":{"path":"list.txt","content":"kelp\nwrack\n"}}]}}`,
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b1a3e000.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	require.NoError(t, os.WriteFile("list.txt", []byte("by hand\nkelp\nwrack\n"), 0o600))
	ask := asker(t, false, false)
	const want = "1\t-\n2-3\t2026-06-01 08:00\tomp\tb1a3e000#a1\tWrite the list.\n"
	require.Equal(t, want, ask("blame", `{"path":"list.txt"}`).text)
	require.Equal(t, want, ask("blame", `{"path":"`+project+`/list.txt"}`).text)
	require.Equal(t, "3\t2026-06-01 08:00\tomp\tb1a3e000#a1\tWrite the list.\n", ask("blame", `{"path":"list.txt","from":3,"to":900}`).text)
	require.Equal(t, "1\t-\n", ask("blame", `{"path":"list.txt","to":1}`).text)
	// Each edit as a diff, also of the path where the file was before.
	diff := ask("touched", `{"path":"list.txt","patch":true}`)
	require.Regexp(t, `^edit sessions/omp/-made/b1a3e000/entries/a1\.json\n.* by omp, in Write the list\.\n\n    Write the list\.\n\n`+
		`--- a/list\.txt\n\+\+\+ b/list\.txt\n@@\n\+kelp\n\+wrack\n$`, diff.text)
	require.NoError(t, os.Rename("list.txt", "moved.txt"))
	require.Equal(t, want, ask("blame", `{"path":"moved.txt","was":"list.txt"}`).text)
	require.Contains(t, ask("touched", `{"path":"moved.txt","patch":true,"was":"`+project+`/list.txt"}`).text, "+++ b/moved.txt\n@@\n+kelp\n")
	require.Contains(t, ask("touched", `{"path":"moved.txt","patch":true}`).notes, "no session names "+project+"/moved.txt")
	require.Contains(t, ask("blame", `{"path":"moved.txt","was":"never.txt"}`).notes, "No edit is of "+project+"/never.txt: no session names")
	for arguments, why := range map[string]string{
		`{"path":"moved.txt","was":"list.txt"}`:                   "was needs patch",
		`{"path":"moved.txt","patch":true,"most":5}`:              "most or patch, not both",
		`{"path":"moved.txt","patch":"yes"}`:                      `patch must be true or false, not "yes"`,
		`{"path":"moved.txt","patch":true,"was":"../x"}`:          "../x is not below " + project,
		`{"path":"moved.txt","patch":true,"was":"/etc/passwd"}`:   "/etc/passwd is not below " + project,
		`{"path":"../moved.txt","patch":true}`:                    "../moved.txt is not below " + project,
		`{"path":"moved.txt","patch":false,"was":"moved.txt"}`:    "was needs patch",
		`{"path":"moved.txt","patch":true,"was":["moved.txt"]}`:   "was must be a text",
		`{"path":"moved.txt","patch":true,"was":"a\u0000b"}`:      "control character",
		`{"path":"moved.txt","patch":true,"was":"x","patches":1}`: "has no parameter",
	} {
		r := ask("touched", arguments)
		require.True(t, r.isError, arguments)
		require.Contains(t, r.text, why, arguments)
	}
	require.NoError(t, os.Rename("moved.txt", "list.txt"))
	for arguments, why := range map[string]string{
		`{"path":"list.txt","from":4}`:          "there are no lines from 4 to 3: the file has 3",
		`{"path":"list.txt","from":3,"to":2}`:   "there are no lines from 3 to 2: the file has 3",
		`{"path":"gone.txt"}`:                   "no such file",
		`{"path":"."}`:                          "is no file of at most 64 MiB",
		`{"path":"list.txt","from":1000000000}`: "from must be a whole number from 1 to",
	} {
		r := ask("blame", arguments)
		require.True(t, r.isError, arguments)
		require.Contains(t, r.text, why, arguments)
	}
}

// TestAgentPaths: a path that leads out of the working directory, as a text or by a link, is refused, also with --everywhere.
func TestAgentPaths(t *testing.T) {
	project := agentHome(t)
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.Mkdir(outside, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "x"), []byte("x\n"), 0o600))
	require.NoError(t, os.MkdirAll("in/deep", 0o700))
	for link, target := range map[string]string{
		"out":     outside,
		"file":    outside + "/x",
		"nowhere": outside + "/gone",
		"up":      "..",
		"loop":    "loop",
		"good":    "in/deep",
		"far":     project + "/in",
	} {
		require.NoError(t, os.Symlink(target, link))
	}
	require.NoError(t, os.WriteFile("in/deep/x", []byte("x\n"), 0o600))
	for _, everywhere := range []bool{false, true} {
		door, err := newAgentDoor(mcpOptions{everywhere: everywhere}, io.Discard)
		require.NoError(t, err)
		for _, path := range []string{
			"..", "../x", "in/../../x", "/", "/etc/passwd", outside + "/x", project + "x", project + "/../x", "out", "out/x", "out/gone/y", "file",
			"nowhere", "nowhere/x", "up", "up/x", "loop", "loop/x", "in/deep/../../../x", strings.Repeat("a", 300), "in\x00/x",
		} {
			_, _, err := door.pathBelow(path)
			require.Error(t, err, path)
			require.Regexp(t, "is not below|it cannot be told where it leads", err.Error(), path)
		}
		for path, want := range map[string]string{
			"in/deep/x":            "/in/deep/x",
			"good/x":               "/in/deep/x",
			"far/deep/x":           "/in/deep/x",
			"./in//deep/../deep/x": "/in/deep/x",
			".":                    "",
			project + "/good/x":    "/in/deep/x",
			"in/gone/for/long":     "/in/gone/for/long",
			"in/deep/x/y":          "/in/deep/x/y",
			"good/gone":            "/in/deep/gone",
		} {
			_, resolved, err := door.pathBelow(path)
			require.NoError(t, err, path)
			require.Equal(t, project+want, resolved, path)
		}
		ask := asker(t, everywhere, false)
		for _, tool := range []string{"blame", "touched"} {
			require.Contains(t, ask(tool, `{"path":"in/../../x"}`).text, "in/../../x is not below "+project)
			require.Contains(t, ask(tool, `{"path":"file"}`).text, "file leads by a link to what is not below "+project)
			require.False(t, ask(tool, `{"path":"good/x"}`).isError)
		}
	}
}

// elsewhere are words of sessions in other directories, and their ids.
var elsewhere = regexp.MustCompile(`7b0e2a54|019e1c4d|019d8d29|019d3db0|gauge-csv|(?m)^(claude|codex) `)

// TestAgentElsewhere: nothing is told of sessions of other directories, whichever way is asked, but with --everywhere.
func TestAgentElsewhere(t *testing.T) {
	agentHome(t)
	everywhere := asker(t, true, false)
	here := asker(t, false, false)
	for _, c := range []struct{ tool, arguments, want string }{
		{"search", `{"query":"stations"}`, "019e1c4d"},
		{"search", `{"query":"cwd:/home/dev role:user"}`, "7b0e2a54"},
		{"search", `{"query":"agent:claude role:user"}`, "7b0e2a54"},
		{"search", `{"query":"cwd:/tmp/gauge-csv role:user"}`, "019d8d29"},
		{"show", `{"id":"019e1c4d"}`, "stations"},
		{"show", `{"id":"019e1c4d#l5"}`, "l5"},
		{"show", `{"id":"019d3db0"}`, "the assignment below"},
		{"show", `{"id":"019"}`, "019e1c4d"},
		{"log", `{"id":"7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17"}`, "leaf"},
		{"stats", `{"by":"cwd"}`, "gauge"},
		{"stats", `{"by":"session","since":"2026-01-01"}`, "019e1c4d"},
		{"stats", `{"by":"agent"}`, "codex"},
	} {
		require.Contains(t, everywhere(c.tool, c.arguments).text, c.want, c)
		r := here(c.tool, c.arguments)
		require.NotRegexp(t, elsewhere, r.notes+regexp.MustCompile(`has the id \S+;`).ReplaceAllString(r.text, ""), c)
	}
	require.Equal(t, "no session here has the id 019e1c4d; search finds ids by words that were said", here("show", `{"id":"019e1c4d"}`).text)
	require.Equal(t, "no session here has the id 77777777; search finds ids by words that were said", here("show", `{"id":"77777777"}`).text)
	require.Regexp(t, `(?m)^total +4 `, here("stats", `{"by":"cwd"}`).text)
	require.Regexp(t, `(?m)^total +7 `, everywhere("stats", `{"by":"cwd"}`).text)
}

// TestAgentNames: the directory above has the sessions of the one below, also where an agent knows it by a link; one that only
// begins with its name is another one.
func TestAgentNames(t *testing.T) {
	project := agentHome(t)
	writeSession(t, "be10e001", project+"/sub/dir", "kelp below")
	writeSession(t, "be510e02", project+"-2", "kelp beside")
	writeSession(t, "ab0e0003", filepath.Dir(project), "kelp above")
	require.Regexp(t, `^be10e001#e0000 .*kelp below\n$`, asker(t, false, false)("search", `{"query":"kelp"}`).text)
	link := filepath.Join(filepath.Dir(project), "link")
	require.NoError(t, os.Symlink(project, link))
	writeSession(t, "11e0e004", link, "kelp linked")
	t.Chdir(link) // sets PWD
	r := asker(t, false, false)("search", `{"query":"kelp"}`)
	require.Contains(t, r.text, "kelp linked")
	require.Contains(t, r.text, "kelp below")
	require.NotContains(t, r.text, "kelp above")
	require.False(t, asker(t, false, false)("touched", fmt.Sprintf(`{"path":%q}`, link+"/main.go")).isError)
}

// TestAgentFresh: a call has sessions that were written after the server began, and lines after the last call.
func TestAgentFresh(t *testing.T) {
	project := agentHome(t)
	ask := asker(t, false, false)
	require.Empty(t, ask("search", `{"query":"kelp"}`).text)
	writeSession(t, "f5e50001", project, "kelp")
	require.Contains(t, ask("search", `{"query":"kelp"}`).text, "f5e50001#e0000")
	writeSession(t, "f5e50001", project, "kelp", "more kelp")
	require.Contains(t, ask("search", `{"query":"kelp"}`).text, "f5e50001#e0001")
	require.Contains(t, ask("show", `{"id":"f5e5#e0001"}`).text, "more kelp")
}

// TestAgentSecrets: a secret is masked in each answer, but with --no-redact.
func TestAgentSecrets(t *testing.T) {
	project := agentHome(t)
	const secret = "AKIAQYLPMN5HHHFPZAM2"
	writeSession(t, "5ec5e700", project, "kelp: aws_access_key_id = "+secret)
	for _, unmasked := range []bool{false, true} {
		ask := asker(t, false, unmasked)
		for tool, arguments := range map[string]string{"search": `{"query":"kelp"}`, "show": `{"id":"5ec5e700"}`, "log": `{"id":"5ec5e700"}`} {
			r := ask(tool, arguments)
			require.Contains(t, r.text, "kelp", tool)
			require.Equal(t, unmasked, strings.Contains(r.text, secret), "%s: %s", tool, r.text)
		}
		require.Equal(t, unmasked, ask("search", `{"query":"`+secret+`"}`).text != "")
	}
}

// withoutTitle returns a transcript without its first line.
func withoutTitle(text string) string {
	if first, rest, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "# ") {
		return rest
	}
	return text
}

// TestAgentGoesOn: an answer beyond 60 KB ends with a cursor; going on gives the rest without a gap or an overlap, also where
// hits were added meanwhile.
func TestAgentGoesOn(t *testing.T) {
	project := agentHome(t)
	var prompts []string
	for i := range 700 {
		prompts = append(prompts, fmt.Sprintf("kelp %d %s", i, strings.Repeat("and wrack ", 20)))
	}
	writeSession(t, "90e50000", project, prompts...)
	ask := asker(t, false, false)
	added := 0
	for tool, arguments := range map[string]string{
		"search": `"query":"kelp","most":1000`,
		"show":   `"id":"90e50000"`,
		"log":    `"id":"90e50000"`,
	} {
		got := ""
		cursor := ""
		pages := 0
		for {
			r := ask(tool, fmt.Sprintf(`{%s%s}`, arguments, cursor))
			require.False(t, r.isError, r.text)
			got += r.text
			pages++
			next := regexp.MustCompile(`call ` + tool + ` with the same parameters and the cursor (\S+)\.`).FindStringSubmatch(r.notes)
			if next == nil {
				break
			}
			cursor = fmt.Sprintf(`,"cursor":%q`, next[1])
			if tool == "search" {
				added++
				writeSession(t, fmt.Sprintf("added%03d", added), project, "kelp at another time")
			}
		}
		require.Greater(t, pages, 1, tool)
		at := regexp.MustCompile(`kelp (\d+) (?:and wrack ){4}`).FindAllStringSubmatch(withoutTitle(got), -1)
		require.Len(t, at, len(prompts), tool)
		for i := range at {
			want := i
			if tool != "show" { // the newest first
				want = len(prompts) - 1 - i
			}
			require.Equal(t, fmt.Sprint(want), at[i][1], tool)
		}
		r := ask(tool, fmt.Sprintf(`{%s,"cursor":"70000-0123456789abcdef"}`, arguments))
		require.True(t, r.isError)
		require.Contains(t, r.text, "ask once more without it")
	}
}

// TestAgentHostile: arguments that are options, places or nonsense name no session, file or option, and end no server.
func TestAgentHostile(t *testing.T) {
	project := agentHome(t)
	file := glob(t, filepath.Join(os.Getenv("HOME"), ".omp/agent/sessions/*/*019d3d96*.jsonl"))[0]
	ask := asker(t, false, false)
	for _, id := range []string{
		file, "sessions/omp", "by-id/019d3d96", "../019d3d96", "019d3d96#../../x", "/", "postgres://me@db.example/team", "demo", "--everywhere",
		"-s", "all", "*", "01?d3d96", "[0]19d3d96", "#", "##", "019d3d96#", "019d3d96#zz", "019d3d96#*", "~", ".", "..", "\u202e", "%2F", "a\nb",
	} {
		for _, tool := range []string{"show", "log"} {
			r := ask(tool, fmt.Sprintf(`{"id":%q}`, id))
			if id == "019d3d96#" {
				continue // the session
			}
			require.True(t, r.isError, "%s %q", tool, id)
			require.NotRegexp(t, "[\u202e\x1b]", r.text)
		}
	}
	for _, query := range []string{"-s all", "--everywhere", "--demo kelp", `"`, "OR", "in:archive", "in:archive tide", "agent:nobody", "cwd:", "after:x", "-"} {
		r := ask("search", fmt.Sprintf(`{"query":%q}`, query))
		require.NotRegexp(t, `(?m)^7b0e2a54|^019e1c4d`, r.text, query)
	}
	for _, by := range []string{"x", "day,day", "--json", "day,model,cwd", "day;rm", ","} {
		require.True(t, ask("stats", fmt.Sprintf(`{"by":%q}`, by)).isError, by)
	}
	require.Contains(t, ask("stats", `{"since":"soon"}`).text, "since needs a date such as")
	require.Contains(t, ask("show", `{"id":"019d"}`).text, "begins the id of more than one session; give more of it:\n  019d3d96")
	require.Contains(t, ask("search", `{"query":"tide"}`).text, "019d3d96", project)
	var files int
	require.NoError(t, filepath.WalkDir(project, func(string, os.DirEntry, error) error {
		files++
		return nil
	}))
	require.Equal(t, 1, files, "something is written")
}

// TestAgentRoot: below / are all sessions, so that --everywhere must say that this is meant.
func TestAgentRoot(t *testing.T) {
	t.Chdir("/")
	_, err := newAgentDoor(mcpOptions{}, io.Discard)
	require.ErrorContains(t, err, "all sessions are below it")
	_, err = newAgentDoor(mcpOptions{everywhere: true}, io.Discard)
	require.NoError(t, err)
}
