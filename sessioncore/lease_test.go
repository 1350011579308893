package sessioncore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/storage/memory"
)

// TestLeaseSocket: the names that the client's own part was seen to take.
func TestLeaseSocket(t *testing.T) {
	for path, want := range map[string]string{
		"":                        "dd4458733774f8b02ff557a2e70c6e06",
		"/tmp/config.yml.lock":    "71327ba360366b2a3eb5de2fa0093fa0",
		"/tmp/test.lock":          "c0b11536af4af31f2f1b828aaf87ec00",
		"/tmp/日本/config.yml.lock": "8e86d6a4347e8cc9794efc489b074c6b",
	} {
		require.Equal(t, "@omp-file-lock-"+want, leaseSocket(path), path)
	}
}

func TestIsLeaseName(t *testing.T) {
	for id, want := range map[string]bool{
		"1f9d2a6b9c0d1234": true, "a_B-9": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a.b": false, "../x": false, "a/b": false, "é": false, "a\n": false,
	} {
		require.Equal(t, want, isLeaseName(id), "%q", id)
	}
}

func TestLeaseDirs(t *testing.T) {
	const owners = "/run/session-owners"
	for _, test := range []struct {
		env     map[string]string
		sources []string
		want    []string
	}{
		{nil, []string{"/home/dev/.omp/agent", "/disk/agent"}, []string{"/home/dev/.omp" + owners, "/disk" + owners}},
		{nil, []string{"/srv/sessions"}, nil},
		{map[string]string{"HOME": "/home/dev"}, []string{"/home/dev/.omp/agent"}, []string{"/home/dev/.omp" + owners}},
		{map[string]string{"HOME": "/home/dev", "PI_CONFIG_DIR": ".xcsh"}, []string{"/srv/store"}, []string{"/home/dev/.xcsh" + owners}},
		{map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/h/.local/state"}, nil, []string{"/h/.omp" + owners, "/h/.local/state/omp" + owners}},
	} {
		require.Equal(t, test.want, LeaseDirs(func(name string) string { return test.env[name] }, test.sources...))
	}
}

// childLease holds the lease at a path until its input ends.
func childLease(args []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: leaseSocket(args[0])}); err != nil {
		return err
	}
	return childtest.SayReady()
}

// TestLeases: a lease is seen while its process lives, of its session alone, and every kind of write is refused.
func TestLeases(t *testing.T) {
	owners := t.TempDir()
	leases := NewLeases("/nowhere/session-owners", owners)
	defer leases.Close()
	w := startWriting(t, memory.New(), plainFile, WriteOptions{Leases: leases})
	snap, err := w.session.Acquire()
	require.NoError(t, err)
	id, err := snap.SessionID()
	require.NoError(t, err)
	snap.Release()

	_, err = w.append(`{"type":"mode_change","mode":"plan"}`)
	require.NoError(t, err)
	_, endOther := childtest.Start(t, "lease", owners+"/another.lock")
	defer endOther()
	_, err = w.append(`{"type":"mode_change","mode":"plan"}`)
	require.NoError(t, err, "another session's lease")

	pid, end := childtest.Start(t, "lease", owners+"/"+id+".lock")
	for what, write := range map[string]func() error{
		"append": func() error { _, err := w.append(`{"type":"mode_change","mode":"plan"}`); return err },
		"leaf":   func() error { return w.MoveLeaf(t.Context(), w.session, "a") },
		"title":  func() error { return w.SetTitle(t.Context(), w.session, "x") },
	} {
		var live *LiveError
		require.ErrorAs(t, write(), &live, what)
		require.Equal(t, SignLease, live.Sign)
		require.Equal(t, pid, live.PID)
		require.ErrorIs(t, live, ErrBusy)
	}
	end()
	_, err = w.append(`{"type":"mode_change","mode":"plan"}`)
	require.NoError(t, err, "it went with its process")
}
