package procfs

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

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
	got, ok := Look(func() int { return 7 })
	require.True(t, ok)
	require.Equal(t, 7, got)

	stop := make(chan struct{})
	for range maxLooks {
		go Look(func() int { <-stop; return 1 })
	}
	require.Eventually(t, func() bool { return len(looks) == maxLooks }, 10*lookLimit, lookLimit/100)
	_, ok = Look(func() int { return 7 })
	require.False(t, ok, "there are enough threads that wait")
	close(stop)
	require.Eventually(t, func() bool { return len(looks) == 0 }, 10*lookLimit, lookLimit/100)
	_, ok = Look(func() int { return 7 })
	require.True(t, ok)

	wait := make(chan struct{})
	defer close(wait)
	_, ok = Look(func() int { <-wait; return 7 })
	require.False(t, ok)
}

// TestWithheld: what the kernel never withholds tells who has a file open for writing.
func TestWithheld(t *testing.T) {
	writer, st := file(t, os.O_WRONLY)
	reader, other := file(t, os.O_RDONLY)
	self := filepath.Join("/proc", strconv.Itoa(os.Getpid()))
	withhold(t)
	for _, c := range []struct {
		files []storage.Token
		holds bool
	}{{[]storage.Token{{Device: 1, Inode: 1}, st.Token}, true}, {[]storage.Token{other.Token}, false}, {nil, false}} {
		holds, err := ProcessHolds(self, c.files...)
		require.NoError(t, err)
		require.Equal(t, c.holds, holds)
	}
	_, err := ProcessHolds("/proc/none", st.Token)
	require.Error(t, err)
	fd, err := FindInfo(self, func(info string) bool {
		inode, ok := InfoInode(info)
		return ok && inode == other.Inode
	})
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(int(reader.Fd())), fd)

	_, err = ReadFile(writer.Name())
	require.ErrorIs(t, err, unix.EBUSY)
	_, err = Readlink(writer.Name())
	require.ErrorIs(t, err, unix.EBUSY)
}
