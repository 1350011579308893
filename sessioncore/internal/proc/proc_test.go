package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

func TestOpensForWriting(t *testing.T) {
	for info, want := range map[string]bool{
		"pos:\t0\nflags:\t0100000\nmnt_id:\t24\n": false,
		"pos:\t0\nflags:\t0100001\nmnt_id:\t24\n": true,
		"pos:\t0\nflags:\t02102002\n":             true,
		"flags:\t010000000\n":                     false, // O_PATH
		"flags:\t1":                               true,
		"flags:\tx\n":                             false,
		"":                                        false,
	} {
		require.Equal(t, want, opensForWriting(info), "%q", info)
	}
}

// file makes a file and returns it, open with the flags.
func file(t *testing.T, flags int) (*os.File, storage.Token) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "x"), flags|os.O_CREATE, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(int(f.Fd()), &st))
	return f, storage.Token{Device: uint64(st.Dev), Inode: st.Ino}
}

// TestWriter: the process is this one while it has the file open for writing, and not while it only reads.
func TestWriter(t *testing.T) {
	writer, token := file(t, os.O_WRONLY)
	reader, err := os.Open(writer.Name())
	require.NoError(t, err)
	defer reader.Close()
	require.Equal(t, os.Getpid(), Writer(token, 0))
	require.Zero(t, Writer(token, os.Getpid()))
	self := Of(os.Getpid())
	holds, err := self.Writes(storage.Token{Device: 1, Inode: 1}, token)
	require.NoError(t, err)
	require.True(t, holds, "one of several")

	require.NoError(t, writer.Close())
	require.Zero(t, Writer(token, 0))
	holds, err = self.Writes(token)
	require.NoError(t, err)
	require.False(t, holds)
}

// withhold makes every look wait until the test ends.
func withhold(t *testing.T) {
	for range maxLooks {
		looks <- struct{}{} // waits for one of an earlier test that is about to end
	}
	t.Cleanup(func() {
		for range maxLooks {
			<-looks
		}
	})
}

func TestLook(t *testing.T) {
	got, err := Look(func() (int, error) { return 7, nil })
	require.NoError(t, err)
	require.Equal(t, 7, got)

	stop := make(chan struct{})
	for range maxLooks {
		go func() { _, _ = Look(func() (int, error) { <-stop; return 1, nil }) }()
	}
	require.Eventually(t, func() bool { return len(looks) == maxLooks }, 10*lookLimit, lookLimit/100)
	_, err = Look(func() (int, error) { return 7, nil })
	require.ErrorIs(t, err, errWithheld, "there are enough threads that wait")
	close(stop)
	require.Eventually(t, func() bool { return len(looks) == 0 }, 10*lookLimit, lookLimit/100)
	_, err = Look(func() (int, error) { return 7, nil })
	require.NoError(t, err)

	wait := make(chan struct{})
	defer close(wait)
	_, err = Look(func() (int, error) { <-wait; return 7, nil })
	require.ErrorIs(t, err, errWithheld)
}

// TestWithheld: what the kernel never withholds tells who has a file open for writing.
func TestWithheld(t *testing.T) {
	_, token := file(t, os.O_WRONLY)
	_, other := file(t, os.O_RDONLY)
	self := Of(os.Getpid())
	withhold(t)
	for _, c := range []struct {
		files []storage.Token
		holds bool
	}{{[]storage.Token{{Device: 1, Inode: 1}, token}, true}, {[]storage.Token{other}, false}, {nil, false}} {
		holds, err := self.Writes(c.files...)
		require.NoError(t, err)
		require.Equal(t, c.holds, holds)
	}
	_, err := Process{Dir: "/proc/none"}.Writes(token)
	require.Error(t, err)
}
