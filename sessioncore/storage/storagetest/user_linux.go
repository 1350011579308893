package storagetest

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// As calls do as an ordinary user, on one thread. The caller is root, also after a failed requirement.
func As(uid int, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become := func(uid int) { // of this thread alone, unlike syscall.Setresuid
		const keep = ^uintptr(0)
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep)
		if errno != 0 {
			panic(errno)
		}
	}
	become(uid)
	defer become(0)
	return do()
}
