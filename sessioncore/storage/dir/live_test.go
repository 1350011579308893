//go:build linux

package dir

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// writers returns the results of Writers and of the scan of /proc.
func writerStates(t *testing.T, s *Storage, name string) [2]storage.WriterState {
	t.Helper()
	state, err := s.Writers(name)
	require.NoError(t, err)
	seen, _ := proc.Find("/proc", storagetest.Stat(t, s, name), 0)
	return [2]storage.WriterState{state, seen}
}

// newUsersStorage returns a storage with a file of an ordinary user: as root in a container we cannot inspect every
// process of root, so that for root's own files the scan of /proc may return WritersUnknown.
func newUsersStorage(t *testing.T) *Storage {
	t.Helper()
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "one\n")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(s.Path(), 1234, 1234))
		require.NoError(t, os.Chown(pathOf(s, "x.jsonl"), 1234, 1234))
	}
	return s
}

// both requires that Writers and the scan agree.
func both(state storage.WriterState) [2]storage.WriterState {
	return [2]storage.WriterState{state, state}
}

func TestWriters(t *testing.T) {
	s := newUsersStorage(t)
	path := pathOf(s, "x.jsonl")
	assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "x.jsonl"))

	reader, err := os.Open(path)
	require.NoError(t, err)
	defer reader.Close()
	assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "x.jsonl"), "a reader is none")
	for _, flags := range []int{os.O_WRONLY | os.O_APPEND, os.O_RDWR} {
		writer, err := os.OpenFile(path, flags, 0)
		require.NoError(t, err)
		assert.Equal(t, both(storage.WritersPresent), writerStates(t, s, "x.jsonl"))
		require.NoError(t, writer.Close())
		assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "x.jsonl"))
	}

	_, end := childtest.Start(t, "hold", path)
	assert.Equal(t, both(storage.WritersPresent), writerStates(t, s, "x.jsonl"))
	st, err := s.Replace("y.jsonl", storage.Replacement{Write: storagetest.Content("another\n")})
	require.NoError(t, err)
	assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "y.jsonl"), "nobody has it open after our own writes")
	_, err = s.Replace("y.jsonl", storage.Replacement{Expect: st.Token, Write: storagetest.Content("two\n")})
	require.NoError(t, err)
	_, err = s.Append("y.jsonl", []byte("three\n"))
	require.NoError(t, err)
	require.NoError(t, s.Sync("y.jsonl"))
	assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "y.jsonl"))
	end()
	assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "x.jsonl"))
}

// TestWritersByOthers: the owner of a file may take a lease; for other users the state is unknown.
func TestWritersByOthers(t *testing.T) {
	folder, err := os.MkdirTemp("/tmp", "sessioncore")
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	require.NoError(t, os.Chmod(folder, 0o755))
	for _, name := range []string{"mine.jsonl", "shared.jsonl", "roots.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("one\n"), 0o644))
	}
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(filepath.Join(folder, "mine.jsonl"), childtest.Nobody, childtest.Nobody))
		require.NoError(t, os.Chown(filepath.Join(folder, "shared.jsonl"), childtest.Nobody, childtest.Nobody))
		require.NoError(t, os.Chmod(filepath.Join(folder, "shared.jsonl"), 0o666))
	}
	assert.Equal(t, fmt.Sprintln(storage.WritersNone, storage.WritersNone), childtest.RunAsNobody(t, "live", folder, "mine.jsonl"))
	assert.Equal(t, fmt.Sprintln(storage.WritersNone, storage.WritersUnknown), childtest.RunAsNobody(t, "live", folder, "shared.jsonl"))
	assert.Equal(t, fmt.Sprintln(storage.WritersUnknown, storage.WritersUnknown), childtest.RunAsNobody(t, "live", folder, "roots.jsonl"))
}

// TestWritersHoldsNobodyUp: programs can open and write the file while Writers is called continuously, and the SIGIO that the
// kernel sends for that is survived.
func TestWritersHoldsNobodyUp(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "")
	writer := exec.Command("sh", "-c", `i=0; while [ $i -lt 300 ]; do echo x >> "$1" || exit 1; i=$((i+1)); done`,
		"sh", pathOf(s, "x.jsonl"))
	require.NoError(t, writer.Start())
	ended := make(chan error, 1)
	go func() { ended <- writer.Wait() }()
	deadline := time.After(storagetest.Generous)
	for asked := 0; ; asked++ {
		select {
		case err := <-ended:
			require.NoError(t, err)
			assert.Len(t, readDisk(t, s, "x.jsonl"), 600)
			t.Logf("asked %d times", asked)
			return
		case <-deadline:
			t.Fatal("the writer is held up")
		default:
			_, err := s.Writers("x.jsonl")
			require.NoError(t, err)
		}
	}
}

// TestForeignLease: writers wait for a program that holds a lease, but only for a limited time.
func TestForeignLease(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "one\n")
	f, err := os.Open(pathOf(s, "x.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	_, err = s.Append("x.jsonl", []byte("two\n"))
	assert.ErrorIs(t, err, storage.ErrLocked)
	fd := f.Fd()
	released := make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		released <- err
	}()
	for start := time.Now(); time.Since(start) < storagetest.Generous; {
		if _, err = s.Append("x.jsonl", []byte("two\n")); err == nil {
			break
		}
		require.ErrorIs(t, err, storage.ErrLocked)
	}
	require.NoError(t, <-released)
	assert.Equal(t, "one\ntwo\n", readDisk(t, s, "x.jsonl"))
}
