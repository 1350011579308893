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
	for _, c := range []struct{ release, module, want string }{
		{"", "v1.2.3+dirty", "v1.2.3+dirty (go1.26.0, go-fuse v2.12.1)"},
		{"v1.3.0-2", "(devel)", "v1.3.0-2 (go1.26.0, go-fuse v2.12.1)"},
		{"v1.3.0-2", "v1.2.3+dirty", "v1.3.0-2 (go1.26.0, go-fuse v2.12.1)"},
		{"", "(devel)", "unknown (built without its commit, go1.26.0, go-fuse v2.12.1)"},
		{"", "", "unknown (built without its commit, go1.26.0, go-fuse v2.12.1)"},
	} {
		info := &debug.BuildInfo{
			GoVersion: "go1.26.0", Main: debug.Module{Version: c.module},
			Deps: []*debug.Module{{Path: "x", Version: "v1"}, {Path: "github.com/hanwen/go-fuse/v2", Version: "v2.12.1"}},
		}
		require.Equal(t, c.want, describe(c.release, info), c)
	}
}

// The program tells a version whichever way it was built and asked.
func TestVersion(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	r := s.run("--version")
	require.Zero(t, r.code)
	// The tests build it without its commit.
	require.Regexp(t, `^sessionfs unknown \(built without its commit, go1\.\d+.*, go-fuse v2\.\d+\.\d+\)\n$`, r.stdout)
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
