//go:build !linux

package dir

import (
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Substitutes for what only Linux provides: paths are walked part by part, which openat2 does in one call; files
// cannot be exchanged, so that replacements fail; and who writes to a file, and since when a process runs, is unknown.

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
