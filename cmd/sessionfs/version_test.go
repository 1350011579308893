//go:build linux

package main

import (
	"os"
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
}
