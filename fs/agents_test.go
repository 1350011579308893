package fs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/sessioncore/storage/sqlite"
	"sessionfs/testdata"
)

// TestForeignOpens: of the directories of other agents nothing is opened but sessions and what is known of them.
func TestForeignOpens(t *testing.T) {
	const session = "rollout-2026-05-12T13-40-05-019e1c4d-7a30-7c52-b1d8-2f60a9e4c713.jsonl"
	dirs := map[string]string{
		"omp":    demo(t),
		"claude": unpack(t, testdata.DemoOf("claude")),
		"codex":  unpack(t, testdata.DemoOf("codex")),
	}
	mayOpen := []string{"history.jsonl", "session_index.jsonl", session, "7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17.jsonl"}
	for _, secret := range []string{
		"claude/.credentials.json", "claude/settings.json", "claude/plugins/config.json", "claude/todos/a.json",
		"claude/projects/-home-dev-tidetable/memory/MEMORY.md",
		"codex/auth.json", "codex/config.toml", "codex/state_5.sqlite", "codex/log/codex-tui.log", "codex/sessions/2026/05/12/notes.txt",
		"codex/sessions/2026/secret.jsonl",
	} {
		agent, name, _ := strings.Cut(secret, "/")
		writeFile(t, filepath.Join(dirs[agent], name), "secret")
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(watch)
	var secrets []string // the names that may not be opened
	for _, agent := range []string{"claude", "codex"} {
		err := filepath.WalkDir(dirs[agent], func(name string, d os.DirEntry, err error) error {
			switch {
			case err != nil:
			case d.IsDir():
				_, err = unix.InotifyAddWatch(watch, name, unix.IN_OPEN)
			case !slices.Contains(mayOpen, d.Name()):
				secrets = append(secrets, d.Name())
			}
			return err
		})
		require.NoError(t, err)
	}
	m := mountForTest(t, mountopts.All, func(o *daemonOptions) {
		for name, dir := range dirs {
			o.Agents = append(o.Agents, mountopts.AgentDir{Name: name, Source: dir, SourceAs: dir})
		}
	})
	require.Greater(t, readAll(t, m.dir), 100)
	require.NotContains(t, string(read(t, m.path("search/secret/results.tsv"))), "\tsessions/c")
	read(t, m.path("usage.jsonl"))
	read(t, m.path("history/prompts.jsonl"))
	events := make([]byte, 1<<20) // each with the name of a file
	n, err := unix.Read(watch, events)
	require.NoError(t, err)
	require.Less(t, n, len(events)/2)
	require.Contains(t, string(events[:n]), session+"\x00", "the test sees what is opened")
	require.GreaterOrEqual(t, len(secrets), 11)
	for _, name := range secrets {
		require.NotContains(t, string(events[:n]), name+"\x00")
	}
}

// readAll reads all regular files below a directory that may be read, and returns their number.
func readAll(t *testing.T, dir string) (count int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		count++
		_, err = os.ReadFile(name)
		if errors.Is(err, syscall.EACCES) {
			return nil
		}
		return err
	})
	require.NoError(t, err)
	return count
}

// TestErrnosOfDatabases: a database that cannot be read is an error of input and output, one that takes too much an error
// of memory.
func TestErrnosOfDatabases(t *testing.T) {
	require.Equal(t, syscall.EIO, nodes.Errno(fmt.Errorf("a list: %w", sqlite.ErrUnreadable)))
	require.Equal(t, syscall.ENOMEM, nodes.Errno(fmt.Errorf("a list: %w", sqlite.ErrNoMemory)))
}
