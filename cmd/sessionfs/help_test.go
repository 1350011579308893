//go:build linux

package main

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHelp: the help fits a screen of 24 lines with the prompt below it, and names every command.
func TestHelp(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	r := s.run("-h").ok(t)
	require.Empty(t, r.stderr)
	require.LessOrEqual(t, strings.Count(r.stdout, "\n"), 23)
	requireNarrow(t, r.stdout)
	require.Equal(t, r, s.run("help"))
	require.Equal(t, r, s.run("--help"))
	root := newRoot(streams{}, "")
	require.Greater(t, len(root.Commands()), 8)
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		require.Regexp(t, `(?m)^  [a-z ]*\b`+c.Name()+`\b`, r.stdout)
	}
	r = s.run("help", "mount").ok(t)
	require.Contains(t, r.stdout, "Exit status")
	requireNarrow(t, r.stdout)
	for _, c := range root.Commands() {
		if c.DisableFlagParsing {
			continue // it is another program
		}
		r := s.run(c.Name(), "--help").ok(t)
		require.LessOrEqual(t, strings.Count(r.stdout, "\n"), 23, c.Name())
		requireNarrow(t, r.stdout)
		require.Contains(t, r.stdout, "\nExample:\n  ", c.Name())
		require.Equal(t, r, s.run("help", c.Name()))
	}
}

// requireNarrow checks that text fits a terminal of 80 columns.
func requireNarrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
}

// TestDescribe: the version has the commit of a build between versions, and the tools, as far as they are known.
func TestDescribe(t *testing.T) {
	for _, c := range []struct{ release, module, want string }{
		{"v1.2.3", "v1.2.3", "v1.2.3 (go1.26.0, go-fuse v2.12.1)"},
		{"v1.2.3", "v1.2.4-0.20261127190552-996fd5ce1234+dirty", "v1.2.3 (v1.2.4-0.20261127190552-996fd5ce1234+dirty, go1.26.0, go-fuse v2.12.1)"},
		{"v1.2.3", "(devel)", "v1.2.3 (go1.26.0, go-fuse v2.12.1)"},
		{"v1.2.3", "", "v1.2.3 (go1.26.0, go-fuse v2.12.1)"},
	} {
		info := &debug.BuildInfo{
			GoVersion: "go1.26.0",
			Main:      debug.Module{Version: c.module},
			Deps:      []*debug.Module{{Path: "x", Version: "v1"}, {Path: "github.com/hanwen/go-fuse/v2", Version: "v2.12.1"}},
		}
		require.Equal(t, c.want, describe(c.release, info), c)
	}
}

// TestVersion: the program tells the newest version of CHANGELOG.md, whichever way it was asked.
func TestVersion(t *testing.T) {
	newest := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$`).FindStringSubmatch(readProject(t, "CHANGELOG.md"))
	require.NotNil(t, newest)
	s := newStore(t, user{"self", os.Geteuid()})
	r := s.run("--version").ok(t)
	require.Regexp(t, `^sessionfs v`+regexp.QuoteMeta(newest[1])+` \(go1\.\d+.*, go-fuse v2\.\d+\.\d+\)\n$`, r.stdout)
	require.Equal(t, r, s.run("version"))
}
