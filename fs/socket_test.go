//go:build linux

package fs

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"sessionfs/sessioncore/storage/storagetest"

	"github.com/stretchr/testify/require"
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

// TestSocketIsNotTaken: a stranger takes the name by which a mount could be known, before it is there, and hinders nothing.
func TestSocketIsNotTaken(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes another user's part, so root")
	}
	s := &Server{minor: 1<<31 | rand.Uint32(), log: slog.New(slog.DiscardHandler)}
	require.NoError(t, storagetest.As(65534, func() error {
		impostor, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketName(0, s.minor), Net: "unix"})
		t.Cleanup(func() { impostor.Close() })
		return err
	}))
	defer s.serveStatus("")()
	pid, _, err := MountEntry{minor: s.minor}.ask(AnswerLimit, AnswerLimit)
	require.Equal(t, os.Getpid(), pid, err)
}
