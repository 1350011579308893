package storagetest

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// As calls do as an ordinary user. The caller is root.
func As(uid int, do func() error) error {
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
