//go:build !linux

package dir

import (
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Substitutes for Linux's calls: openat2 is replaced by walkat; names cannot be exchanged, so that
// replacements fail; and the writers of a file and the start of a process are unknown.

const (
	oPath           = unix.O_RDONLY
	renameExchange  = 0
	renameNoReplace = 0
	errNoAttribute  = unix.ENOATTR
)

func renameat2(fromDir int, from string, toDir int, to string, flags uint) error { return unix.ENOSYS }

func openNoLinks(from int, path string, flags int) (int, error) { return -1, unix.ENOSYS }

func lease(fd int, remote bool) storage.WriterState { return storage.WritersUnknown }

func isShared(fd int) bool { return false }

func statNow(fd int, base string) (storage.Stat, error) { return storage.Stat{}, unix.ENOSYS }

func dropCache(fd int) {}

func startOf(pid int) (time.Time, bool) { return time.Time{}, false }
