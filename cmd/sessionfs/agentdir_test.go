//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// agentTree makes files, and where the name ends in a slash directories, below a new directory.
func agentTree(t *testing.T, names ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(root, name)
		if name[len(name)-1] == '/' {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	return root
}

// checkTree is checkAgentDir of a directory that can be read.
func checkTree(given, dir string, getenv func(string) string) (warning string, err error) {
	items, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	return checkAgentDir(given, dir, items, getenv)
}

func TestCheckAgentDir(t *testing.T) {
	const session = "2026-02-16T10-20-30-000Z_1f9d2a6b9c0d1234.jsonl"
	const usual = "home/.omp/agent" // where HOME is home
	for _, c := range []struct {
		name   string
		tree   []string
		source string
		warn   string // a part of the warning
		refuse string // a part of the refusal
		meant  string // the directory that it names
	}{
		{name: "sessions", tree: []string{"a/sessions/"}, source: "a"},
		{name: "before the first session", tree: []string{"a/f", "a/agent.db"}, source: "a"},
		{name: "new", tree: []string{"a/"}, source: "a", warn: "has no sessions/"},
		{name: "new, beside the usual one", tree: []string{"a/", usual + "/sessions/"}, source: "a", warn: "has no sessions/", meant: usual},
		{name: "settings alone", tree: []string{"a/f", "a/settings.json"}, source: "a", warn: "has no sessions/"},
		{name: "a stranger", tree: []string{"a/lost+found/"}, source: "a", refuse: "mkdir AGENT; ln -s"},
		{
			name: "strangers, with a usual one", tree: []string{"a/f", usual + "/agent.db"}, source: "a",
			refuse: "not an agent directory", meant: usual,
		},
		{name: "sessions is a file", tree: []string{"a/sessions", "a/agent.db"}, source: "a", refuse: "sessions is not a directory"},
		{
			name: "the directory above", tree: []string{".omp/agent/sessions/", ".omp/natives/"}, source: ".omp",
			refuse: "not an agent directory", meant: ".omp/agent",
		},
		{
			name: "above, with settings", tree: []string{".omp/agent/sessions/", ".omp/config.yml"}, source: ".omp",
			warn: "has no sessions/", meant: ".omp/agent",
		},
		{name: "home", tree: []string{"me/.bashrc", "me/.omp/agent/agent.db"}, source: "me", refuse: "not an agent", meant: "me/.omp/agent"},
		{name: "operator", tree: []string{"o/profiles/x", "o/profiles/y/sessions/"}, source: "o", refuse: "not an agent", meant: "o/profiles/y"},
		{
			name: "sessions itself", tree: []string{"a/sessions/--work--/" + session}, source: "a/sessions",
			refuse: "not an agent", meant: "a",
		},
		{name: "empty sessions", tree: []string{"a/sessions/", "a/agent.db"}, source: "a/sessions", warn: "has no sessions/", meant: "a"},
		{name: "new, below a sessions of something else", tree: []string{"srv/sessions/me/"}, source: "srv/sessions/me", warn: "has no sessions/", meant: "srv"},
		{name: "session files alone", tree: []string{"backup/--work--/" + session}, source: "backup", refuse: "mkdir AGENT; ln -s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := agentTree(t, c.tree...)
			getenv := func(name string) string { return map[string]string{"HOME": filepath.Join(root, "home")}[name] }
			source := filepath.Join(root, c.source)
			warning, err := checkTree(source, source, getenv)
			said := warning
			if c.refuse != "" {
				require.Empty(t, warning)
				require.ErrorContains(t, err, c.refuse)
				require.Equal(t, exitSource, err.(*refusal).code)
				said = err.Error()
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.warn == "" && c.refuse == "", said == "", said)
			require.Contains(t, said, c.warn)
			if c.meant == "" {
				require.NotContains(t, said, "meant")
				require.NotContains(t, said, "of this user")
				return
			}
			require.Regexp(t, " "+filepath.Join(root, c.meant)+"$", said)
		})
	}
}

// TestCheckAgentDirPi: an agent directory of pi whose sessions are in another directory lacks nothing, if that is there.
func TestCheckAgentDirPi(t *testing.T) {
	root := agentTree(t, ".pi/agent/trust.json", "elsewhere/")
	agent := filepath.Join(root, ".pi/agent")
	for dir, warns := range map[string]bool{"elsewhere": false, "missing": true} {
		settings := fmt.Sprintf(`{"sessionDir":%q}`, filepath.Join(root, dir))
		require.NoError(t, os.WriteFile(filepath.Join(agent, "settings.json"), []byte(settings), 0o600))
		warning, err := checkTree(agent, agent, func(string) string { return "" })
		require.NoError(t, err)
		require.Equal(t, warns, warning != "", warning)
	}
}

// sessions/ may be a symlink to another disk, which may be away, and a FIFO is not waited for.
func TestCheckAgentDirSpecial(t *testing.T) {
	getenv := func(string) string { return "" }
	root := agentTree(t, "agent/config.yml", "disk/--work--/x.jsonl")
	agent, disk := filepath.Join(root, "agent"), filepath.Join(root, "disk")
	link := filepath.Join(agent, "sessions")

	require.NoError(t, os.Symlink(disk, link))
	warning, err := checkTree(agent, agent, getenv)
	require.NoError(t, err)
	require.Empty(t, warning)
	_, err = checkTree(link, disk, getenv)
	require.ErrorContains(t, err, "Probably meant: "+agent)

	require.NoError(t, os.Rename(disk, filepath.Join(root, "away")))
	warning, err = checkTree(agent, agent, getenv)
	require.NoError(t, err)
	require.Contains(t, warning, "symlink to "+disk)

	odd := agentTree(t, "x")
	require.NoError(t, unix.Mkfifo(filepath.Join(odd, "profiles"), 0o600))
	_, err = checkTree(odd, odd, getenv)
	require.ErrorContains(t, err, "is not an agent directory")
}

// The program says it on stderr: a warning with status 0, a refusal with the status of a wrong SOURCE.
func TestWrongSource(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	for _, source := range []string{"/", "/etc", filepath.Join(s.source, "sessions"), s.dir} {
		for _, front := range []string{"-f", "--foreground=false"} {
			requireStatus(t, exitSource, s.run(front, source, s.mountpoint), source, "sessions/")
		}
	}
	requireStatus(t, exitSource, s.run(s.dir, s.mountpoint), "Probably meant: "+s.source)

	requireFuse(t, s.user)
	empty := s.mkdir("new/agent")
	r := s.run(empty, s.mountpoint)
	requireStatus(t, exitOK, r, "sessionfs: warning: ", empty, "has no sessions/")
	// A client makes its directories later, and then they show.
	session := filepath.Join(empty, sessionPath)
	require.NoError(t, os.MkdirAll(filepath.Dir(session), 0o700))
	require.NoError(t, os.WriteFile(session, []byte(sessionText), 0o600))
	require.True(t, eventually(func() bool { return s.exec("cat", filepath.Join(s.mountpoint, sessionPath)).stdout == sessionText }))
	require.Zero(t, s.run("-u", s.mountpoint).code)
	s.requireUnmounted()
}
