package fs

import (
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// OurMountpoints returns the mount points that this program serves. The path that it exports tells
// its mounts.
func OurMountpoints() (found []string) {
	mounts := make([]unix.Statfs_t, 1024)
	n, _ := unix.Getfsstat(mounts, unix.MNT_NOWAIT)
	for i := range mounts[:max(n, 0)] {
		from := unix.ByteSliceToString(mounts[i].Mntfromname[:])
		path, ok := strings.CutPrefix(from, "127.0.0.1:/")
		if ok && len(path) == 26 {
			found = append(found, unix.ByteSliceToString(mounts[i].Mntonname[:]))
		}
	}
	return found
}

// Unmount unmounts, with force also a mount that is in use.
func Unmount(mountpoint string, force bool) error {
	ours := OurMountpoints()
	if !slices.ContainsFunc(RealPaths(mountpoint), func(real string) bool { return slices.Contains(ours, real) }) {
		return Refuse(ErrUnmount, "%s is no mount of sessionfs", mountpoint)
	}
	args := []string{mountpoint}
	if force {
		args = []string{"-f", mountpoint}
	}
	text, err := exec.Command("/sbin/umount", args...).CombinedOutput()
	if err != nil {
		return Refuse(ErrUnmount, "cannot unmount %s: %s %s", mountpoint, err, text)
	}
	return nil
}
