//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribe(t *testing.T) {
	const revision = "0e5c9abc3793007ebe2aa87e8300e0e49de452a3"
	commit := []debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: revision},
		{Key: "vcs.time", Value: "2026-11-21T04:45:48Z"}, {Key: "vcs.modified", Value: "false"},
	}
	modified := append(commit[:3:3], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, c := range []struct {
		name, release, module string
		settings              []debug.BuildSetting
		want                  string
	}{
		{"tag", "", "v1.2.3", commit, "v1.2.3 (commit 0e5c9abc3793 of 2026-11-21, go1.26.0, go-fuse v2.12.1)"},
		{
			"changed working copy", "", "v1.2.3+dirty", modified,
			"v1.2.3+dirty (commit 0e5c9abc3793 of 2026-11-21, modified, go1.26.0, go-fuse v2.12.1)",
		},
		{"go install of a version", "", "v1.2.3", nil, "v1.2.3 (go1.26.0, go-fuse v2.12.1)"},
		{"packager", "v1.3.0-2", "(devel)", nil, "v1.3.0-2 (go1.26.0, go-fuse v2.12.1)"},
		{"commit alone", "", "(devel)", commit, "commit-0e5c9abc3793 (commit 0e5c9abc3793 of 2026-11-21, go1.26.0, go-fuse v2.12.1)"},
		{"nothing", "", "(devel)", nil, "build-b (built without its commit, go1.26.0, go-fuse v2.12.1)"},
		{"no build information", "", "", nil, "build-b (built without its commit, go1.26.0, go-fuse v2.12.1)"},
		{
			"short revision", "", "", []debug.BuildSetting{{Key: "vcs.revision", Value: "12"}},
			"commit-12 (commit 12, go1.26.0, go-fuse v2.12.1)",
		},
	} {
		info := &debug.BuildInfo{
			GoVersion: "go1.26.0", Main: debug.Module{Version: c.module}, Settings: c.settings,
			Deps: []*debug.Module{{Path: "x", Version: "v1"}, {Path: "github.com/hanwen/go-fuse/v2", Version: "v2.12.1"}},
		}
		require.Equal(t, c.want, describe(c.release, info, func() string { return "b" }), c.name)
	}
}

// The program tells a version whichever way it was built and asked.
func TestVersion(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	r := s.run("--version")
	require.Zero(t, r.code)
	// The tests build it without its commit.
	require.Regexp(t, `^sessionfs build-[0-9a-f]{12} \(built without its commit, go1\.\d+.*, go-fuse v2\.\d+\.\d+\)\n$`, r.stdout)
	require.Equal(t, r, s.run("version"))

	if testing.Short() {
		t.Skip("the rest compiles the program, for a user who has nothing compiled yet all of it")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the rest builds the program: ", err)
	}
	packaged := filepath.Join(s.dir, "packaged")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.release=v1.2.3-4", "-o", packaged, ".")
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	r = s.exec(packaged, "--version")
	require.Zero(t, r.code)
	require.Regexp(t, `^sessionfs v1\.2\.3-4 \(go1\.`, r.stdout)
}
