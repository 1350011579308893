//go:build linux

package dir

import (
	"context"
	"errors"
	"os"
	"os/exec"
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

// both requires that Writers and the scan agree.
func both(state storage.WriterState) [2]storage.WriterState {
	return [2]storage.WriterState{state, state}
}

func TestWriters(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	path := pathOf(s, "x.jsonl")
	if os.Geteuid() == 0 { // of its own files it does not know in a container, where it may not look at each process of root
		require.NoError(t, os.Chown(s.Path(), 1234, 1234))
		require.NoError(t, os.Chown(path, 1234, 1234))
	}
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
	for _, text := range []string{"another\n", "two\n"} {
		_, err = storagetest.Replace(s, "y.jsonl", text)
		require.NoError(t, err)
		assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "y.jsonl"), "nobody has it open after our own writes")
	}
	_, err = s.Append("y.jsonl", []byte("three\n"))
	require.NoError(t, err)
	require.NoError(t, s.Sync("y.jsonl"))
	assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "y.jsonl"))
	end()
	assert.Equal(t, both(storage.WritersNone), writerStates(t, s, "x.jsonl"))
}

// TestWritersByOthers: the owner of a file may take a lease; for other users the state is unknown.
func TestWritersByOthers(t *testing.T) {
	needRoot(t)
	const none, unknown = storage.WritersNone, storage.WritersUnknown
	s := openPublic(t, "mine.jsonl", "shared.jsonl", "roots.jsonl")
	require.NoError(t, os.Chmod(pathOf(s, "mine.jsonl"), 0o644))
	asNobody(t, func() {
		assert.Equal(t, both(none), writerStates(t, s, "mine.jsonl"))
		assert.Equal(t, [2]storage.WriterState{none, unknown}, writerStates(t, s, "shared.jsonl"))
		assert.Equal(t, both(unknown), writerStates(t, s, "roots.jsonl"))
	}, pathOf(s, "mine.jsonl"), pathOf(s, "shared.jsonl"))
}

// TestWritersHoldsNobodyUp: programs can open and write the file while Writers is called continuously, and the SIGIO that the
// kernel sends for that is survived.
func TestWritersHoldsNobodyUp(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "")
	ctx, cancel := context.WithTimeout(t.Context(), storagetest.Generous)
	defer cancel()
	writer := exec.CommandContext(ctx, "sh", "-c", `i=0; while [ $i -lt 300 ]; do echo x >> "$1" || exit 1; i=$((i+1)); done`,
		"sh", pathOf(s, "x.jsonl"))
	require.NoError(t, writer.Start())
	ended := make(chan error, 1)
	go func() { ended <- writer.Wait() }()
	for len(ended) == 0 {
		_, err := s.Writers("x.jsonl")
		require.NoError(t, err)
	}
	require.NoError(t, <-ended)
	assert.Len(t, readDisk(t, s, "x.jsonl"), 600)
}

// TestForeignLease: writers wait for a program that holds a lease, but only for a limited time.
func TestForeignLease(t *testing.T) {
	s := openTemp(t, "x.jsonl")
	f, err := os.Open(pathOf(s, "x.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	_, err = s.Append("x.jsonl", []byte("two\n"))
	assert.ErrorIs(t, err, storage.ErrLocked)
	fd, released := f.Fd(), make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
		released <- err
	}()
	require.Eventually(t, func() bool {
		_, err = s.Append("x.jsonl", []byte("two\n"))
		return !errors.Is(err, storage.ErrLocked)
	}, storagetest.Generous, time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, <-released)
	assert.Equal(t, "one\ntwo\n", readDisk(t, s, "x.jsonl"))
}
