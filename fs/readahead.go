package fs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxReadAhead lets the kernel ask for as much at once as it will, in bytes: large sequential reads
// then cost few round trips.
const maxReadAhead = 1 << 20

// raiseReadAhead has the kernel read that far ahead. It takes our word only for less than it has by default,
// 128 KiB; root can set more, through sysfs, and for others it stays at that.
func raiseReadAhead(mountpoint string) error {
	var st unix.Statx_t
	// The number of the mount's device is known without asking us.
	if err := unix.Statx(unix.AT_FDCWD, mountpoint, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, 0, &st); err != nil {
		return err
	}
	setting := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", st.Dev_major, st.Dev_minor)
	return os.WriteFile(setting, fmt.Append(nil, maxReadAhead>>10), 0)
}
