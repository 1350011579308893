//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notTried are the examples of help that no test types, and why.
var notTried = map[string]string{
	"sessionfs keep --timer":               "it changes what the user's machine starts; keep_timer has a systemctl of its own",
	"sessionfs mcp --install":              "a program in a directory for temporary files is refused; TestAgentInstall has it",
	"sessionfs nfs":                        "it serves until it is ended; nfs_test.go has it",
	"sessionfs nfs --port 20490 all":       "it serves until it is ended; nfs_test.go has it",
	"sessionfs pick --resume":              "it needs a terminal; pick_resume has it",
	"sessionfs resume --in claude 019d3d9": "it needs a directory of that agent; handover has it",
}

// TestExamplesOfHelp: each example of a command's help works as it is typed in the home that sessionfs demo lays out, and so
// does the help's own, by TestReadme.
func TestExamplesOfHelp(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	t.Parallel()
	needsTools(t, "bash", "jq")
	var steps []step
	add := func(command string) { steps = append(steps, step{file: "help", command: command}) }
	add("cd ~/tidetable")
	skipped := 0
	for _, c := range newRoot(streams{}, "").Commands() {
		if c.Hidden {
			continue
		}
		for example := range strings.Lines(c.Example) {
			example = strings.TrimSpace(example)
			if _, ok := notTried[example]; ok {
				skipped++
			} else if example != "" {
				add("cd ~/tidetable; " + example)
			}
		}
	}
	require.Equal(t, len(notTried), skipped, "notTried has what no help has")
	require.Greater(t, len(steps), 25)
	s := newReadmeStore(t)
	for name, text := range map[string]string{
		"ssh":  "shift\nexec \"$@\"\n", // this machine is the other one too
		"omp":  "echo goes on\n",
		"mail": "cat >/dev/null\n",
		"psql": "grep -q 'CREATE TRIGGER'\n",
		"tar":  "mkdir -p ~/host && cd ~/host && exec /bin/tar \"$@\"\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "tools", name), []byte("#!/bin/sh\n"+text), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "tidetable/main.go"), []byte(strings.Repeat("package main\n", 30)), 0o600))
	s.run("demo", filepath.Join(s.dir, "old-laptop")).ok(t)
	s.chown()
	results := s.typeInto(allShells()[0], steps)
	for i, got := range results {
		want := 0
		if strings.Contains(steps[i].command, "sessionfs diff ") { // they differ
			want = 1
		}
		assert.Equal(t, want, got.code, "%s\n%s", steps[i].command, got.stdout)
	}
}
