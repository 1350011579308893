//go:build !linux

package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/storage/dir"
)

// statfsOf returns a function that refuses: only the kernel of a mount asks, and mounts are Linux's.
func statfsOf(*dir.Storage) func(*fuse.StatfsOut) error {
	return func(*fuse.StatfsOut) error { return syscall.ENOSYS }
}
