package accesstest

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// As calls f on a thread of its own that has a user's credentials for files; the first of the groups is his primary one.
// It skips the test without root.
func As(t testing.TB, uid uint32, gids []uint32, f func(tid uint32)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become other users")
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and no unlock: the thread ends with the goroutine, as it must not serve anything else
		done <- func() error {
			if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(gids)), uintptr(unsafe.Pointer(&gids[0])), 0); e != 0 {
				return e
			}
			if _, err := unix.SetfsgidRetGid(int(gids[0])); err != nil {
				return err
			}
			if _, err := unix.SetfsuidRetUid(int(uid)); err != nil {
				return err
			}
			f(uint32(unix.Gettid()))
			return nil
		}()
	}()
	require.NoError(t, <-done)
}

// May reports whether the kernel grants the calling thread rights to a file, a combination of unix.R_OK, W_OK and X_OK.
func May(file string, rights uint32) bool {
	return unix.Faccessat2(unix.AT_FDCWD, file, rights, unix.AT_EACCESS) == nil
}
