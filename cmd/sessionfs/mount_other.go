//go:build !linux && !darwin

package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// mount says that this system has no mounts; it returns the exit status.
func mount(args []string, s streams) int {
	c, status, done := mountCommand(args, s)
	if done {
		return status
	}
	return report(refuse(exitFuse, "sessions are mounted on Linux and macOS only; 'sessionfs nfs' serves them to this system's NFS client, and 'sessionfs ls', for example, needs no mount.\n"+
		"'sessionfs --help' lists all commands."), c.Helper, s.err)
}

func systemCommands() []*cobra.Command { return nil }

func ourMountpoints() []string { return nil }

func toldMounts() []place { return nil }

func mountedAt(string) (p place, err error) { return p, nil }

// mountNFS returns the command that mounts an exported path.
func mountNFS(port int, path, mountpoint string) []string {
	options := fmt.Sprintf("nfsv3,tcp,soft,nolockd,port=%d", port)
	return []string{"mount_nfs", "-o", options, "127.0.0.1:" + path, mountpoint}
}
