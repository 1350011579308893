package procfs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

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
	got, err := Look(func() (int, error) { return 7, nil })
	require.NoError(t, err)
	require.Equal(t, 7, got)

	stop := make(chan struct{})
	for range maxLooks {
		go Look(func() (int, error) { <-stop; return 1, nil })
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
	_, st := file(t, os.O_WRONLY)
	_, other := file(t, os.O_RDONLY)
	self := Of(os.Getpid())
	withhold(t)
	for _, c := range []struct {
		files []storage.Token
		holds bool
	}{{[]storage.Token{{Device: 1, Inode: 1}, st.Token}, true}, {[]storage.Token{other.Token}, false}, {nil, false}} {
		holds, err := self.Writes(c.files...)
		require.NoError(t, err)
		require.Equal(t, c.holds, holds)
	}
	_, err := Process{Dir: "/proc/none"}.Writes(st.Token)
	require.Error(t, err)
}
