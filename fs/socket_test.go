//go:build linux

package fs

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestNewestSocketIsAsked: a mount can get the number of one that has just gone, while the daemon of that one still ends.
func TestNewestSocketIsAsked(t *testing.T) {
	s := &Server{minor: 1<<31 | rand.Uint32(), log: slog.New(slog.DiscardHandler)}                             // no mount's number is that large
	before, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketName(os.Geteuid(), s.minor), Net: "unix"}) // as earlier versions
	require.NoError(t, err)
	defer before.Close()
	e := MountEntry{User: os.Geteuid(), minor: s.minor}
	_, _, err = e.ask(time.Millisecond, time.Second)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	defer s.serveStatus("")()
	for range 2 {
		_, _, err = e.ask(AnswerLimit, AnswerLimit)
		require.ErrorIs(t, err, io.EOF, "it has no server, and so panics; what listens goes on")
	}
}

// TestSocketIsNotTaken: who takes the name by which a mount could be known, before it is there, hinders nothing.
func TestSocketIsNotTaken(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes another user's part, so root")
	}
	s := &Server{minor: 1<<31 | rand.Uint32(), log: slog.New(slog.DiscardHandler)}
	require.NoError(t, as(65534, func() error {
		impostor, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketName(0, s.minor), Net: "unix"})
		t.Cleanup(func() { impostor.Close() })
		return err
	}))
	defer s.serveStatus("")()
	pid, _, err := MountEntry{minor: s.minor}.ask(AnswerLimit, AnswerLimit)
	require.Equal(t, os.Getpid(), pid, err)
}

// as does something as an ordinary user.
func as(uid int, do func() error) error {
	runtime.LockOSThread() // the system call is for a thread alone, unlike syscall.Setresuid
	defer runtime.UnlockOSThread()
	const keep = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep); errno != 0 {
		return errno
	}
	err := do()
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, 0, keep); errno != 0 {
		return errno
	}
	return err
}
