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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// readyEnv asks the process that serves a mount to say on stdout when it is ready.
const readyEnv = "SESSIONFS_SAY_READY"

// mount mounts by NFS, or unmounts; it returns the exit status.
func mount(args []string, s streams) int {
	c, status, done := mountCommand(args, s)
	ctx, release := untilSignal(context.Background())
	defer release()
	switch at := (place{Options: c.Options}); {
	case done:
		return status
	case c.Unmount:
		return report(unmountNFS(c.Options.Mountpoint, c.Lazy), c.Helper, s.err)
	case c.Options.Foreground:
		return report(serveMount(ctx, at, s), c.Helper, s.err)
	}
	return report(mountInBackground(args, s), c.Helper, s.err)
}

// mountInBackground serves the mount in a process of its own, and returns when it is ready.
func mountInBackground(args []string, s streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{"-f"}, args[1:]...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), readyEnv+"=1"), s.err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "" {
		return nil
	}
	if err = cmd.Wait(); err != nil { // it has said why
		return ended(cmd.ProcessState.ExitCode())
	}
	return nil
}

// serveMount mounts a place and serves it until it is unmounted or a signal comes.
func serveMount(ctx context.Context, at place, s streams) error {
	defer at.remove()
	mountpoint, err := filepath.EvalSymlinks(at.Mountpoint)
	if err == nil {
		mountpoint, err = filepath.Abs(mountpoint)
	}
	if items, readErr := os.ReadDir(mountpoint); errors.Join(err, readErr) != nil || len(items) > 0 {
		return refuse(exitMountpoint, "%s is not there, or not empty; choose an empty directory", at.Mountpoint)
	}
	log, background := s.err, os.Getenv(readyEnv) != ""
	if background { // that is the terminal's
		log = io.Discard
	}
	server, err := at.openNFS(0, s.err, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() { stop(); <-served }()
	command := append(strings.Fields("/sbin/"+mountNFS(server)), mountpoint)
	if text, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return refuse(exitMount, "mounting at %s failed: %s %s", mountpoint, err, text)
	}
	if background {
		fmt.Fprintln(s.out, "ready")
	}
	for look := time.Tick(5 * time.Second); slices.Contains(ourMountpoints(), mountpoint); {
		select {
		case <-look:
		case <-ctx.Done():
			return unmountNFS(mountpoint, true)
		}
	}
	return nil
}

// ourMountpoints returns the mount points that this program serves. The path that it exports tells
// its mounts.
func ourMountpoints() (found []string) {
	mounts := make([]unix.Statfs_t, 1024)
	n, _ := unix.Getfsstat(mounts, unix.MNT_NOWAIT)
	for i := range mounts[:max(n, 0)] {
		from := unix.ByteSliceToString(mounts[i].Mntfromname[:])
		if path, ok := strings.CutPrefix(from, "127.0.0.1:/"); ok && len(path) == 26 {
			found = append(found, unix.ByteSliceToString(mounts[i].Mntonname[:]))
		}
	}
	return found
}

// unmountNFS unmounts, with force also a mount that is in use.
func unmountNFS(mountpoint string, force bool) error {
	ours := ourMountpoints()
	if !slices.ContainsFunc(realPaths(mountpoint), func(real string) bool { return slices.Contains(ours, real) }) {
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
		Run: func(cmd *cobra.Command, _ []string) {
			for _, m := range ourMountpoints() {
				fmt.Fprintln(cmd.OutOrStdout(), m)
			}
		},
	}}
}

func toldMounts() []place { return nil }

func mountedAt(string) (p place, err error) { return p, nil }
