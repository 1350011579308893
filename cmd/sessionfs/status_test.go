//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"path"
	"strings"
	"testing"
	"time"

	"sessionfs/sessioncore/storage/storagetest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
)

// TestStatusFull: a mount that refuses memory is not ok, and the reason is told below the table.
func TestStatusFull(t *testing.T) {
	var out strings.Builder
	counters := &fs.Counters{Memory: 90 << 20, Files: 12, Temporary: 5 << 20, Full: "memory is full: 99 of 100 MiB are in open files"}
	require.NoError(t, printStatus(&out, []fs.Status{{Mountpoint: "/m", Source: "/s", State: fs.StateFull, PID: 7, Counters: counters}}, time.Time{}, 0))
	require.Regexp(t, `^MOUNTPOINT .* MEMORY +FILES +TEMP\n/m +/s +full +7 .* 90M +12 +5M\n`+
		`/m: memory is full: 99 of 100 MiB are in open files; close some\n$`, out.String())
}

// TestStatusWidths: on a narrow terminal the columns of a mount stand below its path, and no path is cut.
func TestStatusWidths(t *testing.T) {
	mounts := []fs.Status{
		{
			Mountpoint: "/home/somebody/a/very/long/path/of/agent-sessions",
			Source:     "/home/somebody/.omp/agent",
			State:      fs.StateOK,
			PID:        7,
			Counters:   &fs.Counters{Memory: 90 << 20, Files: 12, Temporary: 5 << 20},
		},
		{Mountpoint: "/m", Source: "/s", State: fs.StateDead},
	}
	shown := func(width int) string {
		var out strings.Builder
		require.NoError(t, printStatus(&out, mounts, time.Time{}, width))
		return out.String()
	}
	require.Equal(t, shown(0), shown(200))
	require.Equal(t, 3, strings.Count(shown(0), "\n"))
	for _, width := range []int{40, 80} {
		got := shown(width)
		require.NotContains(t, got, "MOUNTPOINT")
		for line := range strings.Lines(got) {
			require.LessOrEqual(t, len(line)-1, max(width, len(mounts[0].Mountpoint)), line)
		}
	}
	require.Equal(t, "/home/somebody/a/very/long/path/of/agent-sessions\n  /home/somebody/.omp/agent\n"+
		"  state ok, pid 7, up 0s, open 0,\n  sessions 0, memory 90M, files 12,\n  temp 5M\n"+
		"/m\n  /s\n  state dead, pid -, up -, open -,\n  sessions -, memory -, files -, temp -\n", shown(40))
}

// TestStatusOfOthers: nobody is told of other users' mounts but root, and nobody is believed who is not the mount's user.
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
	require.Contains(t, s.run("status", "--json", s.mountpoint).ok(t).stdout, `"state":"ok"`)
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
