package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
)

// nfsOptions are those of a mount. With sync write(2) has the error of a line. soft keeps the Finder from hanging when the
// server was killed.
const nfsOptions = "vers=3,tcp,sync,soft,nolocks,locallocks,nobrowse,actimeo=1,nonegnamecache,noresvport,nosuid,nodev"

// mountNFS returns the command that mounts an exported path.
func mountNFS(port int, path, mountpoint string) string {
	return "mount -t nfs " + strings.Join(mountArguments(port, path, mountpoint), " ")
}

func mountArguments(port int, path, mountpoint string) []string {
	return []string{"-o", fmt.Sprintf("%s,port=%d,mountport=%[2]d", nfsOptions, port), "127.0.0.1:" + path, mountpoint}
}

// readyEnv asks the process that serves a mount to say on stdout when it is ready.
const readyEnv = "SESSIONFS_SAY_READY"

// mount mounts by NFS, or unmounts; it returns the exit status.
func mount(args []string, s streams) int {
	c, status, done := mountCommand(args, s)
	switch {
	case done:
		return status
	case c.Unmount:
		return report(unmountNFS(c.Options.Mountpoint, c.Lazy), c.Helper, s.err)
	case !c.Options.Foreground:
		return report(mountInBackground(args, s), c.Helper, s.err)
	}
	ctx, release := untilSignal(context.Background())
	defer release()
	return report(serveMount(ctx, place{Options: c.Options}, s), c.Helper, s.err)
}

// mountInBackground serves the mount in a process of its own, and returns when it is ready.
func mountInBackground(args []string, s streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{"-f"}, args[1:]...)...)
	cmd.Env = append(os.Environ(), readyEnv+"=1")
	cmd.Stderr = s.err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "" {
		return nil
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended(exit.ExitCode())
	}
	return err
}

// serveMount mounts a place and serves it until it is unmounted or a signal comes.
func serveMount(ctx context.Context, at place, s streams) error {
	defer at.remove()
	if err := at.resolve(s.err); err != nil {
		return err
	}
	mountpoint, err := filepath.Abs(at.Mountpoint)
	if err != nil {
		return err
	}
	if items, err := os.ReadDir(mountpoint); err != nil || len(items) > 0 {
		return refuse(exitMountpoint, "%s is not there, or not empty; choose an empty directory", mountpoint)
	}
	log := s.err
	if os.Getenv(readyEnv) != "" { // it is the terminal's
		log = io.Discard
	}
	if at.LogFile != "" {
		file, err := os.OpenFile(at.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		log = file
	}
	server, err := fs.OpenNFS(at.Options, 0, textLogger(at.Options, log))
	if err != nil {
		return sourceError(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	mount := exec.Command("/sbin/mount_nfs", mountArguments(server.Port(), server.Export(), mountpoint)...)
	if text, err := mount.CombinedOutput(); err != nil {
		return refuse(exitMount, "mounting at %s failed: %s %s", mountpoint, err, text)
	}
	if os.Getenv(readyEnv) != "" {
		fmt.Fprintln(s.out, "ready")
	}
	for look := time.Tick(5 * time.Second); ; {
		select {
		case <-look:
			if !isOurs(mountpoint) {
				return nil
			}
		case err := <-served:
			return err
		case <-ctx.Done():
			return unmountNFS(mountpoint, true)
		}
	}
}

// nfsMounts returns the mount points that this program serves.
func nfsMounts() (mountpoints []string) {
	n, err := unix.Getfsstat(nil, unix.MNT_NOWAIT)
	if err != nil {
		return nil
	}
	mounts := make([]unix.Statfs_t, n)
	if n, err = unix.Getfsstat(mounts, unix.MNT_NOWAIT); err != nil {
		return nil
	}
	for i := range mounts[:n] {
		m := &mounts[i]
		kind, from := unix.ByteSliceToString(m.Fstypename[:]), unix.ByteSliceToString(m.Mntfromname[:])
		if path, ok := strings.CutPrefix(from, "127.0.0.1:/"); ok && kind == "nfs" && len(path) == exportLength {
			mountpoints = append(mountpoints, unix.ByteSliceToString(m.Mntonname[:]))
		}
	}
	return mountpoints
}

// exportLength is the length of an exported path.
const exportLength = 26

func isOurs(mountpoint string) bool {
	for _, real := range realPaths(mountpoint) {
		for _, m := range nfsMounts() {
			if m == real {
				return true
			}
		}
	}
	return false
}

// unmountNFS unmounts, with force also what is in use.
func unmountNFS(mountpoint string, force bool) error {
	if !isOurs(mountpoint) {
		return refuse(exitUnmount, "%s is no mount of sessionfs", mountpoint)
	}
	args := []string{mountpoint}
	if force {
		args = []string{"-f", mountpoint}
	}
	if text, err := exec.Command("/sbin/umount", args...).CombinedOutput(); err != nil {
		return refuse(exitUnmount, "cannot unmount %s: %s %s", mountpoint, err, text)
	}
	return nil
}

func systemCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use:   "status",
		Short: "List the mounts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, m := range nfsMounts() {
				fmt.Fprintln(cmd.OutOrStdout(), m)
			}
			return nil
		},
	}}
}

func ourMountpoints() []string { return nfsMounts() }

func toldMounts() []place { return nil }

func mountedAt(string) (p place, err error) { return p, nil }
