//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/source"
	"sessionfs/testdata"
)

// TestNamesOfCommands: the name of a command is one as the first argument only, so that no directory of that name is out of reach.
func TestNamesOfCommands(t *testing.T) {
	for name, command := range commands {
		c := command()
		require.True(t, c.Name() == name || c.HasAlias(name), name)
	}
	for line, want := range map[string]bool{
		"sessionfs":                           false,
		"sessionfs ls":                        true,
		"sessionfs ls mnt":                    true,
		"sessionfs cat x":                     true,
		"sessionfs help ls":                   true,
		"sessionfs help":                      true,
		"sessionfs completion bash":           true,
		"sessionfs __complete ls":             true,
		"sessionfs ./ls mnt":                  false,
		"sessionfs ls/ mnt":                   false,
		"sessionfs src ls":                    false,
		"sessionfs -- ls mnt":                 false,
		"sessionfs -f ls mnt":                 false,
		"sessionfs -u ls":                     false,
		"sessionfs --demo ls":                 false,
		"sessionfs -- help mnt":               false,
		"sessionfs version":                   true,
		"mount.sessionfs ls /mnt":             false,
		"/sbin/mount.fuse.sessionfs cat /mnt": false,
	} {
		require.Equal(t, want, isCommand(strings.Fields(line)), line)
	}
}

// commandStore is the sample store for commands that need no mount.
func commandStore(t *testing.T) *store {
	t.Helper()
	s := newStore(t, user{"self", os.Geteuid()})
	require.NoError(t, os.RemoveAll(s.source))
	require.NoError(t, os.Mkdir(s.source, 0o700))
	require.NoError(t, source.Unpack(testdata.Demo(), s.source))
	return s
}

// here runs a command in this process, which is quicker.
func (s *store) here(command string, args ...string) result {
	s.t.Helper()
	return s.fed("", command, args...)
}

// fed is here with what is typed into it.
func (s *store) fed(input, command string, args ...string) result {
	s.t.Helper()
	return typedLine(input, append([]string{command, "-s", s.source}, args...)...)
}

// typedLine runs a command line in this process.
func typedLine(input string, args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(append([]string{"sessionfs"}, args...), streams{strings.NewReader(input), &stdout, &stderr})
	return result{code, stdout.String(), stderr.String()}
}

// TestWithoutFuse: the commands need neither /dev/fuse nor a right to mount, and the sample store goes away with them.
func TestWithoutFuse(t *testing.T) {
	needsMounts(t, "takes devices away in a mount namespace, so root")
	s := newStore(t, user{"user", nobody})
	r := s.inNamespace(`mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; run "$@"`, "cat", "--demo", "by-id/019d3d9/title")
	require.Equal(t, result{0, "An hour late, a hand too high\n", ""}, r)
	require.Empty(t, glob(t, filepath.Join(testRoot, "sessionfs-demo-*")))
}

// TestMessagesControlNoTerminal gives each command arguments with control characters: no message
// has them.
func TestMessagesControlNoTerminal(t *testing.T) {
	s := commandStore(t)
	dir := filepath.Join(s.source, "sessions", "odd\x1b[2J")
	require.NoError(t, os.Mkdir(dir, 0o700))
	text := `{"type":"session","version":3,"id":"i\u001b[2Jd","timestamp":"2026-01-05T23:25:51.290Z",` +
		`"cwd":"/w\u001b[2J","title":"t\u001b[2J\u009b2J\u202e"}` + "\n" +
		`{"type":"message","id":"\u009b","parentId":null,"timestamp":"2026-01-05T23:25:52.000Z","message":{"role":"assistant",` +
		`"content":[{"type":"toolCall","id":"c","name":"write","arguments":{"path":"/kelp","content":"\u001b[2J\u009b2J\u202e"}}]}}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f\x1b[2J.jsonl"), []byte(text), 0o600))
	const odd = "x\x1b[2J\u009b2J\u202e"
	args := [][]string{
		{odd},
		{"sessions/" + odd},
		{"by-id/" + odd, odd},
		{"a*" + odd},
		{odd + "#" + odd},
		{"019d3d9#" + odd},
		{"i"},
		{"sessions/odd\x1b[2J", "recent"},
		{"sessions/odd\x1b[2J/f\x1b[2J"},
		{filepath.Join(dir, "f\x1b[2J.jsonl")},
		{"--json", "i"},
		{"--json", "kelp"},
		{"--json", "i", "019d3d9"},
		{"-p", "/kelp"},
		{"--json", "--by", "session"},
		{"-o", odd},
		{"-o", "prices=" + odd},
		{"--" + odd},
		{"-" + odd},
	}
	for _, c := range newRoot(streams{}, "").Commands() {
		for _, args := range args {
			r := s.here(c.Name(), args...)
			require.NotRegexp(t, "[\x1b\u009b\u202e]", r.stderr, "%s %q", c.Name(), args)
			if !slices.Contains([]string{"ls", "cat", "tar", "bundle"}, c.Name()) { // they print stored bytes as they are
				require.NotRegexp(t, "[\x1b\u009b\u202e]", r.stdout, "%s %q", c.Name(), args)
			}
		}
	}
	for _, args := range [][]string{{odd}, {odd, odd}, {"-s", odd}, {"-o", odd, odd, odd}, {"-u", odd}, {"--all", odd}, {odd, t.TempDir()}} {
		for _, command := range []string{"", "ls", "check", "import", "pick", "status"} {
			args := slices.Concat([]string{command}, args)
			if command == "" {
				args = args[1:]
			}
			if command == "" && len(args) > 1 && args[0] != "-u" {
				args = append(args, "--unknown"+odd) // nothing is mounted
			}
			r := typedLine("", args...)
			require.NotRegexp(t, "[\x1b\u009b\u202e]", r.stdout+r.stderr, "%q", args)
		}
	}
}

// odd has characters that break a line or change a terminal.
const odd = "\u2028\u2029\u0085\u009b2J\x1b[2J\u202e\u2066\u061c"

// oddLines returns the lines of a session, with such characters in each text, in a working directory. It has calls that
// write a file and another one.
func oddLines(dir, file, other string) []map[string]any {
	return []map[string]any{
		{"type": "session", "version": 3, "id": "kelp" + odd, "timestamp": "2026-01-05T23:25:51.290Z", "cwd": dir, "title": "Kelp" + odd},
		{"type": "message", "id": "a1", "parentId": nil, "message": map[string]any{"role": "user", "content": "Plant kelp" + odd}},
		{"type": "model_change", "id": "a2" + odd, "parentId": "a1", "model": "m" + odd + "/n" + odd},
		{
			"type":     "message",
			"id":       "a3" + odd,
			"parentId": "a2" + odd,
			"message": map[string]any{
				"role":     "assistant",
				"model":    "n" + odd,
				"provider": "m" + odd,
				"usage":    map[string]any{"input": 1, "output": 2},
				"content": []any{
					map[string]any{"type": "text", "text": "Kelp" + odd},
					map[string]any{"type": "toolCall", "id": "c", "name": "write", "arguments": map[string]any{"path": file, "content": "kelp\n"}},
					map[string]any{"type": "toolCall", "id": "e", "name": "write", "arguments": map[string]any{"path": other, "content": "kelp " + odd}},
					map[string]any{"type": "toolCall", "id": "d", "name": "tool" + odd, "arguments": map[string]any{"path": file}},
				},
			},
		},
		{
			"type":     "message",
			"id":       "a4",
			"parentId": "a3" + odd,
			"message": map[string]any{
				"role":       "toolResult",
				"toolCallId": "c",
				"toolName":   "write",
				"content":    []any{map[string]any{"type": "text", "text": "kelp" + odd}},
			},
		},
		{
			"type":     "message",
			"id":       "a5",
			"parentId": "a4",
			"message": map[string]any{
				"role":       "toolResult",
				"toolCallId": "d",
				"toolName":   "tool" + odd,
				"isError":    true,
				"content":    []any{map[string]any{"type": "text", "text": "kelp" + odd}},
			},
		},
		{"type": "label", "id": "a6", "parentId": "a5", "targetId": "a1", "label": "label" + odd},
		{"type": "odd" + odd, "id": "a7", "parentId": "a6"},
		{"type": "message", "id": "a8", "parentId": "gone" + odd, "message": map[string]any{"role": "user" + odd, "content": "kelp"}},
	}
}

// TestRowsStayRows gives every text of a session characters that break a line or change a terminal: no command that prints a row
// for it has them, off a terminal, on one, and as JSON.
func TestRowsStayRows(t *testing.T) {
	s := commandStore(t)
	dir := filepath.Join(t.TempDir(), "pond"+odd)
	require.NoError(t, os.MkdirAll(filepath.Join(s.source, "sessions", "odd"), 0o700))
	require.NoError(t, os.Mkdir(dir, 0o700))
	file := filepath.Join(dir, "kelp"+odd+".txt")
	require.NoError(t, os.WriteFile(file, []byte("kelp\n"), 0o600))
	other := filepath.Join(dir, "other")
	var text []byte
	for n, line := range oddLines(dir, file, other) {
		if n > 0 {
			line["timestamp"] = fmt.Sprintf("2026-01-05T23:26:%02d.000Z", n)
		}
		quoted, err := json.Marshal(line)
		require.NoError(t, err)
		text = append(text, quoted...)
		text = append(text, '\n')
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.source, "sessions/odd/f.jsonl"), text, 0o600))
	t.Setenv("PAGER", "cat")
	t.Setenv("TERM", "xterm")
	for _, args := range rowCommands(file, other) {
		r := s.here(args[0], args[1:]...)
		require.Less(t, r.code, exitUsage, "%q %s", args, r.stderr)
		require.NotRegexp(t, "[\u2028\u2029\u0085\u009b\x1b\u202e\u2066\u061c]", r.stdout+r.stderr, "%q", args)
		if args[0] != "pick" { // it would wait for a choice
			shown := s.onTerminal(args[0], args[1:]...)
			require.NotRegexp(t, "[\u2028\u2029\u0085\u009b\u202e\u2066\u061c]|\x1b\\[2J", shown, "%q", args)
		}
	}
}

// rowCommands returns command lines that print rows about the session of oddLines.
func rowCommands(file, other string) [][]string {
	commands := [][]string{
		{"search", "kelp"},
		{"search", "-C", "1", "kelp"},
		{"search", "--json", "kelp"},
		{"touched", file},
		{"touched", "-p", other},
		{"touched", "-p", file},
		{"touched", "--json", file},
		{"blame", file},
		{"blame", "--json", file},
		{"log", "kelp"},
		{"log", "--json", "kelp"},
		{"pick", "kelp"},
		{"show", "kelp"},
		{"check"},
		{"check", "--json"},
		{"ls", "recent"},
		{"ls", "-l", "recent"},
		{"ls", "-R", "by-id"},
		{"ls", "by-cwd"},
		{"ls", "-R", "by-cwd"},
		{"ls", "-l", "by-id/*/branches"},
		{"ls", "-lR", "by-id/kelp*"},
		{"stats", "--by", "session"},
		{"diff", "kelp", "019d3d9"},
		{"fork", "kelp#a1"},
	}
	for _, key := range []string{"session", "model", "tool", "cwd", "agent", "day", "model,cwd", "session,tool"} {
		commands = append(commands, []string{"stats", "--by", key}, []string{"stats", "--json", "--by", key})
	}
	return commands
}

// onTerminal returns the output of a command that runs in this process on a terminal.
func (s *store) onTerminal(command string, args ...string) string {
	s.t.Helper()
	const end = "the end of the output"
	terminal, output := openTerminal(s.t)
	shown := make(chan string)
	go func() { shown <- readTo(s.t, output, end) }()
	args = append([]string{"sessionfs", command, "-s", s.source}, args...)
	run(args, streams{strings.NewReader(""), terminal, terminal})
	_, err := terminal.WriteString(end)
	require.NoError(s.t, err)
	return <-shown
}
