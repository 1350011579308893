//go:build !linux && !darwin

package main

import "github.com/spf13/cobra"

// mount says that this system has no mounts; it returns the exit status.
func mount(args []string, s streams) int {
	c, status, done := mountCommand(args, s)
	if done {
		return status
	}
	return report(refuse(exitFuse, "sessions are mounted on Linux and macOS only; "+
		"'sessionfs nfs' serves them to this system's NFS client, and 'sessionfs ls', for example, needs no mount.\n"+
		"'sessionfs --help' lists all commands."), c.Helper, s.err)
}

var statusCommand, umountCommand func() *cobra.Command

func ourMountpoints() []string { return nil }
