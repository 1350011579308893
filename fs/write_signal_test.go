package fs_test

import (
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWriteIsNotInterrupted: a signal that the writer handles does not fail its write: programs do not
// expect EINTR of a file.
func TestWriteIsNotInterrupted(t *testing.T) {
	w := newWriting(t)
	fd := w.openAppend(unix.O_WRONLY)
	defer unix.Close(fd)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	runtime.LockOSThread() // the signals are for the thread that writes
	defer runtime.UnlockOSThread()
	writer := unix.Gettid()
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-signals:
			default:
				_ = unix.Tgkill(os.Getpid(), writer, syscall.SIGUSR1)
			}
		}
	}()
	line := message(strings.Repeat("x", 100)) + "\n"
	for range 300 {
		_, err := unix.Write(fd, []byte(line))
		require.NoError(t, err)
	}
	close(stop)
	<-done
}
