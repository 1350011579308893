package fs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
	"sessionfs/testdata"
)

// The mount of other agents' sessions, and of those of all agents.

// The sessions of the demo.
const (
	claudeDemo = "-home-dev-tidetable/7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17"
	codexDemo  = "2026-05-12/rollout-2026-05-12T13-40-05-019e1c4d-7a30-7c52-b1d8-2f60a9e4c713"
)

// allAgents are directories of all agents, and the option that mounts them.
func allAgents(t *testing.T) (dirs map[string]string, all mountOption) {
	dirs = map[string]string{
		"omp": demo(t), "pi": unpack(t, os.DirFS("../testdata/pi")),
		"claude": unpack(t, testdata.DemoOf("claude")), "codex": unpack(t, testdata.DemoOf("codex")),
	}
	return dirs, func(o *daemonOptions) {
		for _, name := range []string{"omp", "pi", "claude", "codex"} {
			o.Agents = append(o.Agents, mountopts.AgentDir{Name: name, Source: dirs[name], SourceAs: dirs[name]})
		}
	}
}

// TestForeignOpens: of the directories of other agents nothing is opened but sessions and what is known of them.
func TestForeignOpens(t *testing.T) {
	dirs, all := allAgents(t)
	for _, secret := range []string{
		"claude/.credentials.json", "claude/settings.json", "claude/plugins/config.json", "claude/todos/a.json",
		"claude/projects/-home-dev-tidetable/memory/MEMORY.md",
		"codex/auth.json", "codex/config.toml", "codex/state_5.sqlite", "codex/log/codex-tui.log", "codex/sessions/2026/05/12/notes.txt",
		"codex/sessions/2026/secret.jsonl",
	} {
		agent, name, _ := strings.Cut(secret, "/")
		file := filepath.Join(dirs[agent], name)
		writeFile(t, file, "secret")
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(watch)
	for _, agent := range []string{"claude", "codex"} {
		require.NoError(t, filepath.WalkDir(dirs[agent], func(name string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_, err = unix.InotifyAddWatch(watch, name, unix.IN_OPEN)
			}
			return err
		}))
	}
	opened(t, watch) // by the walk
	m := mountForTest(t, mountopts.All, all)
	shown := 0
	require.NoError(t, filepath.WalkDir(m.dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			shown++
			if _, err := os.ReadFile(name); err != nil && !errors.Is(err, syscall.EACCES) {
				return err
			}
		}
		return err
	}))
	require.Greater(t, shown, 100)
	require.NotContains(t, string(read(t, m.path("search/secret/results.tsv"))), "\tsessions/c")
	read(t, m.path("usage.jsonl"))
	read(t, m.path("history/prompts.jsonl"))
	found := opened(t, watch)
	require.Contains(t, found, filepath.Base(codexDemo)+".jsonl", "the test sees what is opened")
	for _, name := range found {
		fine := name == "history.jsonl" || name == "session_index.jsonl" || name == filepath.Base(codexDemo)+".jsonl" ||
			name == filepath.Base(claudeDemo)+".jsonl"
		require.True(t, fine, "%s was opened", name)
	}
}

// opened returns the names of the files that were opened, sorted.
func opened(t *testing.T, watch int) (all []string) {
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Read(watch, buf)
		if errors.Is(err, unix.EAGAIN) || n <= 0 {
			slices.Sort(all)
			return slices.Compact(all)
		}
		require.NoError(t, err)
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			mask := uint32(b[4]) | uint32(b[5])<<8 | uint32(b[6])<<16 | uint32(b[7])<<24
			size := int(uint32(b[12]) | uint32(b[13])<<8)
			require.Zero(t, mask&unix.IN_Q_OVERFLOW)
			if mask&unix.IN_ISDIR == 0 {
				all = append(all, strings.TrimRight(string(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size]), "\x00"))
			}
			b = b[unix.SizeofInotifyEvent+size:]
		}
	}
}
