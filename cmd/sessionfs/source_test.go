//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"sessionfs/mountopts"
)

// TestSourceThroughALink: a client that knows the agent directory by the same link as the user who mounts has the lock of
// that path, and writes respect it.
func TestSourceThroughALink(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	requireFuse(t, s.user)
	link := filepath.Join(s.dir, "link")
	require.NoError(t, os.Symlink(s.source, link))
	s.source = "link"
	s.mount()
	session := filepath.Join(s.mountpoint, strings.TrimSuffix(sessionPath, ".jsonl"))
	line := func() result {
		return s.exec("sh", "-c", `printf '{"type":"custom","customType":"x"}\n' > "$1/append"`, "sh", session)
	}
	require.Zero(t, line().code)

	in, base := filepath.Split(sessionPath)
	lock := filepath.Join(link, in, "."+base+".lock.os")
	hash := func(seed uint64) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(lock)
		return d.Sum64()
	}
	name := fmt.Sprintf("@omp-file-lock-%016x%016x", hash(0x4f4d502d4c4f434b), hash(0x50492d46494c454c))
	held, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	require.NoError(t, err)
	require.NotZero(t, line().code)
	require.Contains(t, s.exec("cat", session+"/last-error").stdout, fmt.Sprintf("held by process %d", os.Getpid()))
	require.NoError(t, held.Close())
	require.Zero(t, line().code)
}

// TestPlaceSource: the default of SOURCE and the breadcrumbs are where the client has them.
func TestPlaceSource(t *testing.T) {
	for _, c := range []struct {
		there  string // directories in HOME
		given  string
		source string // wanted
		state  string
	}{
		{"data state", "", ".omp/agent", ""},
		{".pi/agent", "", ".pi/agent", ""},
		{".pi/agent .omp/agent", "", ".omp/agent", ""},
		{".omp/agent state/omp", "", ".omp/agent", "state/omp"},
		{".omp/agent data/omp", "", "data/omp", ".omp/agent"},
		{".omp/agent data/omp state/omp", "", "data/omp", "state/omp"},
		{".omp/agent data/omp state/omp", "data/omp", "data/omp", "state/omp"},
		{".omp/agent data/omp state/omp other", "other", "other", ""},
	} {
		home := t.TempDir()
		in := func(name string) string {
			if name == "" {
				return ""
			}
			return filepath.Join(home, name)
		}
		for _, dir := range strings.Fields(c.there) {
			require.NoError(t, os.MkdirAll(in(dir), 0o700))
		}
		env := map[string]string{"HOME": home, "XDG_DATA_HOME": in("data"), "XDG_STATE_HOME": in("state")}
		o := mountopts.Options{Source: in(c.given)}
		placeSource(&o, func(name string) string { return env[name] })
		require.Equal(t, mountopts.Options{Source: in(c.source), State: in(c.state)}, o, "%s: %s", c.there, c.given)
		env["PI_CODING_AGENT_DIR"] = in("elsewhere")
		o = mountopts.Options{}
		placeSource(&o, func(name string) string { return env[name] })
		require.Equal(t, mountopts.Options{Source: in("elsewhere")}, o)
	}
}

// TestDefaultSource: it is refused as one that is given, with what else one can do.
func TestDefaultSource(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	requireStatus(t, exitSource, s.run(s.mountpoint), filepath.Join(s.dir, ".omp/agent"), "--demo")
	s.mkdir("sessions") // an agent directory around the mount point
	cmd := s.command(program, s.mountpoint)
	cmd.Env = append(cmd.Env, "PI_CODING_AGENT_DIR="+s.dir)
	requireStatus(t, exitMountpoint, s.finish(cmd), "lies in SOURCE", s.dir)
	none := s.command(program, "ls")
	none.Env = append(none.Env, "HOME=")
	requireStatus(t, exitUsage, s.finish(none), "SOURCE is not given")
}
