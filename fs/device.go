//go:build linux

package fs

import (
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The FUSE library keeps the descriptor of its connection to itself. So it is looked for among those of this process:
// it is the one that was not there before the mount.

// mounting is held during a mount, so that there is only one such descriptor.
var mounting sync.Mutex

// newServer is fuse.NewServer. device is a copy of the connection's descriptor, which callers must close, or -1 if err
// says why there is none.
func newServer(raw fuse.RawFileSystem, mountpoint string, o *fuse.MountOptions) (server *fuse.Server, device int, missing, err error) {
	mounting.Lock()
	defer mounting.Unlock()
	before, missing := fuseDevices()
	if server, err = fuse.NewServer(raw, mountpoint, o); err != nil {
		return nil, -1, nil, err
	}
	if missing == nil {
		device, missing = newDevice(before)
	}
	if missing != nil {
		device = -1
	}
	return server, device, missing, nil
}

// newDevice copies the descriptor of a FUSE connection that is not among those before.
func newDevice(before map[int]bool) (int, error) {
	now, err := fuseDevices()
	if err != nil {
		return -1, err
	}
	for fd := range before {
		delete(now, fd)
	}
	for fd := range now {
		if len(now) == 1 {
			return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		}
	}
	return -1, fmt.Errorf("%d new descriptors of /dev/fuse", len(now))
}

// fuseDevices returns the descriptors of this process that are of /dev/fuse.
func fuseDevices() (map[int]bool, error) {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	found := map[int]bool{}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		// The device has this number on every Linux (Documentation/admin-guide/devices.txt).
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(10, 229) {
			found[fd] = true
		}
	}
	return found, nil
}
