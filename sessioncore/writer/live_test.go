package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/clienttest"
	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// answeringStorage is a storage with fixed answers about the programs that have a file open for writing.
type answeringStorage struct {
	storage.Storage
	state storage.WriterState
	err   error
}

func (a answeringStorage) Writers(string) (storage.WriterState, error) { return a.state, a.err }

// everyWrite are the kinds of writes to a session that has the entries a and b.
var everyWrite = map[string]func(w *Writer, s *sessioncore.Session) error{
	"append": func(w *Writer, s *sessioncore.Session) error {
		_, err := w.Append(context.Background(), s, []byte(`{"type":"mode_change","mode":"plan"}`))
		return err
	},
	"leaf":  func(w *Writer, s *sessioncore.Session) error { return w.MoveLeaf(context.Background(), s, new("a")) },
	"reset": func(w *Writer, s *sessioncore.Session) error { return w.MoveLeaf(context.Background(), s, nil) },
	"label": func(w *Writer, s *sessioncore.Session) error { return w.SetLabel(context.Background(), s, "a", "L") },
	"title": func(w *Writer, s *sessioncore.Session) error { return w.SetTitle(context.Background(), s, "T") },
	"import": func(w *Writer, s *sessioncore.Session) error {
		snap, err := s.Acquire(context.Background())
		if err != nil {
			return err
		}
		defer snap.Release()
		text := make([]byte, snap.Stat().Size)
		err = storage.ReadFull(snap.File(), text, 0)
		_, importErr := w.Import(context.Background(), s.Name(), copyOf(string(text)+importMore))
		return errors.Join(err, importErr)
	},
}

// TestLiveRefusesEveryWrite: each kind of write is refused and names the client; a fork is not a write.
func TestLiveRefusesEveryWrite(t *testing.T) {
	a, known := startAgent(t)
	tty, id := clienttest.Terminal(t)
	a.Crumb(id, "p/s.jsonl")
	ctx := context.Background()
	const old = "p/old.jsonl"
	require.NoError(t, os.WriteFile(filepath.Join(a.Path, "sessions", old),
		[]byte(strings.Replace(clienttest.Session, `"version":3`, `"version":2`, 1)), 0o600))
	store := sessioncore.NewStore(a.Sessions)
	t.Cleanup(store.Close)
	pid, end := clienttest.Imitation{Stdin: tty, Control: tty, Files: []string{a.Database("agent.db")}}.Start(t)
	w := New(store, Options{Journal: a.Sessions, Clients: known})
	for _, name := range []string{"p/s.jsonl", "p/s/sub.jsonl", old} {
		a.Crumb(id, name)
		before := fileContent(t, a.Sessions, name)
		s := store.Session(name)
		for what, write := range everyWrite {
			err := write(w, s)
			var live *clients.LiveError
			require.ErrorAs(t, err, &live, "%s %s", what, name)
			require.ErrorIs(t, err, sessioncore.ErrBusy)
			found, _ := live.Process()
			require.Equal(t, pid, found)
			require.Contains(t, err.Error(), fmt.Sprintf("process %d", pid))
		}
		if name == "p/s.jsonl" {
			require.ErrorIs(t, w.SetCWD(ctx, s, t.TempDir()), sessioncore.ErrBusy)
		}
		require.Equal(t, before, fileContent(t, a.Sessions, name))
		_, err := w.Fork(ctx, s, "a", "")
		require.NoError(t, err)
		if name == old {
			allowed := New(store, Options{Journal: a.Sessions, Clients: known, LiveAllow: true})
			require.NoError(t, everyWrite["append"](allowed, s))
		}
	}
	end()
	for what, write := range everyWrite {
		require.NoError(t, write(w, store.Session("p/s.jsonl")), what)
	}
}

// startAgent returns an agent directory with the Clients for it.
func startAgent(t *testing.T) (*clienttest.Agent, *clients.Clients) {
	t.Helper()
	a := clienttest.NewAgent(t)
	return a, clients.New(a.Root, a.Terminals)
}

// childLease holds the lease at a path until its input ends.
func childLease(args []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: proc.LockSocket(args[0])}); err != nil {
		return err
	}
	return childtest.SayReady()
}

// TestLeases: a lease is found while its process lives, only for its own session, and every kind of write is refused at
// once: nothing is waited for. That needs neither files nor leases of the file system.
func TestLeases(t *testing.T) {
	files := memory.New()
	owners := t.TempDir()
	leases := clients.NewLeases("/nowhere/session-owners", owners).Beside("/nowhere", owners)
	putFile(t, files, plainName, plainFile)
	taken := 0
	w := startWriting(t, &storagetest.Hooked{Storage: files, Before: func(c storagetest.Call) error {
		if c.Op == "Lock" {
			taken++
		}
		return nil
	}}, "", Options{Leases: leases})
	id, err := w.session.ID(context.Background())
	require.NoError(t, err)
	in, base := filepath.Split(plainName)

	w.adds(`{"type":"mode_change","mode":"plan"}`)
	_, endOther := childtest.Start(t, "lease", owners+"/another.lock")
	defer endOther()
	_, err = w.append(`{"type":"mode_change","mode":"plan"}`)
	require.NoError(t, err, "another session's lease")

	for where, path := range map[string]string{
		"by the id":       owners + "/" + id + ".lock",
		"beside the file": filepath.Join(owners, in, "."+base+".owner.lock"),
	} {
		pid, end := childtest.Start(t, "lease", path)
		for what, write := range everyWrite {
			var live *clients.LiveError
			taken = 0
			require.ErrorAs(t, write(w.Writer, w.session), &live, "%s, %s", where, what)
			require.Equal(t, clients.SignLease, live.Sign)
			found, _ := live.Process()
			require.Equal(t, pid, found)
			require.ErrorContains(t, live, fmt.Sprintf("%s: process %d", plainName, pid))
			require.ErrorIs(t, live, sessioncore.ErrBusy)
			require.Equal(t, 1, taken, "it is not tried again")
		}
		end()
		_, err = w.append(`{"type":"mode_change","mode":"plan"}`)
		require.NoError(t, err, "it went with its process")
	}
}

// TestLockAfterPanic: a panic under the lock does not leave it behind, for then the client could not write.
func TestLockAfterPanic(t *testing.T) {
	files := memory.New()
	putFile(t, files, plainName, plainFile)
	w := startWriting(t, &storagetest.Hooked{Storage: files, Before: func(c storagetest.Call) error {
		if c.Op == "Open" {
			panic("a bug")
		}
		return nil
	}}, "", Options{})
	require.Panics(t, func() { _, _ = w.append(`{"type":"mode_change","mode":"plan"}`) })
	_, _, err := w.lock(t.Context(), w.session) // reads the session in a goroutine of its own
	require.ErrorContains(t, err, "a bug")
	unlock, err := files.Lock(t.Context(), plainName)
	require.NoError(t, err)
	require.NoError(t, unlock())
}
