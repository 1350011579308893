//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sessionfs/sessioncore/storage/storagetest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
)

// status runs the command, and returns what it tells of the store's mount.
func (s *store) status(want int) map[string]any {
	s.t.Helper()
	r := s.run("status", "--json", s.mountpoint)
	require.Equal(s.t, want, r.code, r)
	var all []map[string]any
	require.NoError(s.t, json.Unmarshal([]byte(r.stdout), &all), r)
	require.Len(s.t, all, 1)
	require.Equal(s.t, s.mountpoint, all[0]["mountpoint"])
	require.Equal(s.t, s.source, all[0]["source"])
	require.EqualValues(s.t, s.user.uid, all[0]["uid"])
	return all[0]
}

// TestStatusFull: a mount that refuses memory is not ok, and the reason is told below the table.
func TestStatusFull(t *testing.T) {
	var out strings.Builder
	counters := &fs.Counters{Memory: 90 << 20, Files: 12, Temporary: 5 << 20, Full: "memory is full: 99 of 100 MiB are in open files"}
	require.NoError(t, printStatus(&out, []fs.Status{{Mountpoint: "/m", Source: "/s", State: fs.StateFull, PID: 7, Counters: counters}}, time.Time{}))
	require.Regexp(t, `^MOUNTPOINT .* MEMORY +FILES +TEMP\n/m +/s +full +7 .* 90M +12 +5M\n`+
		`/m: memory is full: 99 of 100 MiB are in open files; close some\n$`, out.String())
}

// status tells what a mount does, what it does not any more, and when there is none.
func TestStatus(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		requireStatus(t, exitFailure, s.run("status", s.mountpoint), "no sessionfs is mounted at "+s.mountpoint)
		requireStatus(t, exitUsage, s.run("status", "a", "b"))
		pid := s.mount()
		before := s.status(exitOK)
		require.Equal(t, "ok", before["state"])
		require.EqualValues(t, pid, before["pid"])
		require.Contains(t, before["version"], "go-fuse")
		require.Equal(t, false, before["shared"])
		since, err := time.Parse(time.RFC3339, before["since"].(string))
		require.NoError(t, err)
		require.Less(t, time.Since(since), 2*patience)

		require.Zero(t, s.exec("cat", filepath.Join(s.mountpoint, strings.TrimSuffix(sessionPath, ".jsonl"), "transcript.md")).code)
		require.NotZero(t, s.exec("sh", "-c", "echo {} >"+s.mountpoint+"/new-session").code)
		release := s.hold()
		after := s.status(exitOK)
		require.Greater(t, after["last"], before["last"])
		for what, want := range map[string]float64{"open": 1, "sessions": 1, "temporary": 0} {
			require.Equal(t, want, after[what], what)
		}
		require.Greater(t, after["files"], 3.0)
		require.Contains(t, after, "idle")
		require.NotContains(t, after, "full")
		r := s.run("status") // other mounts of this user, which need not be ok, are there too
		require.Regexp(t, `(?m)^MOUNTPOINT +SOURCE +STATE +PID +UP `, r.stdout)
		require.Regexp(t, `(?m)^`+s.mountpoint+` +`+s.source+` +ok +\d+ +\d+m?s`, r.stdout)
		release()

		// One that is stopped hangs; it is told without waiting for the mount.
		stop(t, pid)
		stopped := s.status(exitFailure)
		require.Equal(t, "hangs", stopped["state"])
		require.EqualValues(t, pid, stopped["pid"])
		require.NotContains(t, stopped, "open")
		require.NoError(t, unix.Kill(pid, unix.SIGCONT))
		require.Equal(t, "ok", s.status(exitOK)["state"])

		s.kill()
		dead := s.status(exitFailure)
		require.Equal(t, "dead", dead["state"])
		require.NotContains(t, dead, "pid")
		s.unmount()
	})
}

// Nobody is told of other users' mounts but root, and nobody is believed who is not the mount's user.
func TestStatusOfOthers(t *testing.T) {
	needsRoot(t, "has several users, so root")
	s := newMountable(t, user{"user", nobody})
	s.mount()
	e, ok := fs.MountAt(s.mountpoint)
	require.True(t, ok)
	asked := func() fs.Status { return fs.StatusOf([]fs.MountEntry{e}, fs.AnswerLimit)[0] } // as root
	require.Equal(t, s.pid(), asked().PID)
	require.NotEmpty(t, asked().Version)

	other := *s
	other.user = user{"other", nobody - 1}
	r := other.run("status", "--json")
	require.Equal(t, "[]\n", r.stdout, r)
	requireStatus(t, exitFailure, other.run("status", s.mountpoint), "was mounted by user")
	sockets, err := e.Sockets()
	require.NoError(t, err)
	require.Len(t, sockets, 1)
	text, err := readAs(nobody-1, sockets[0])
	require.NoError(t, err)
	require.Empty(t, text, "nothing is told to somebody else")
	text, err = readAs(nobody, sockets[0])
	require.NoError(t, err)
	require.True(t, json.Valid(text))

	for _, name := range []string{"", "/0", "/f"} { // earlier and later ones, of somebody who is not the user, and does not accept
		impostor, err := net.ListenUnix("unix", &net.UnixAddr{Name: path.Dir(sockets[0]) + name, Net: "unix"})
		require.NoError(t, err)
		defer impostor.Close()
	}
	require.Equal(t, "ok", s.status(exitOK)["state"])
	s.unmount()
	require.True(t, eventually(func() bool { // the daemon ends
		return asked().PID == 0
	}))
}

// readAs connects to a socket as an ordinary user, and reads what it is told.
func readAs(uid int, name string) (text []byte, err error) {
	var conn *net.UnixConn
	err = storagetest.As(uid, func() (err error) {
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "\n") // it may be closed already
	text, err = io.ReadAll(conn)
	if errors.Is(err, unix.ECONNRESET) {
		err = nil
	}
	return text, err
}

// Where the socket cannot be reached, the mount itself is looked at. The socket is gone when the mount is.
func TestStatusWithoutSocket(t *testing.T) {
	needsRoot(t, "makes a network namespace, so root")
	s := newMountable(t, user{"root", 0})
	s.mount()
	e, _ := fs.MountAt(s.mountpoint)
	r := s.exec("unshare", "--net", program, "status", "--json", s.mountpoint)
	require.Equal(t, exitFailure, r.code, r)
	require.Contains(t, r.stdout, `"state":"silent"`)
	s.unmount()
	require.True(t, eventually(func() bool {
		sockets, err := e.Sockets()
		return err == nil && len(sockets) == 0
	}))
}
