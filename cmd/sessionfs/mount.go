//go:build linux

package main

import "sessionfs/mountopts"

// mount mounts or unmounts; it returns the exit status.
func mount(args []string, s streams) int {
	ready := takeReadyPipe()
	c, status, done := mountCommand(args, s)
	switch {
	case done:
		return status
	case c.Action == mountopts.Unmount:
		return report(unmountCommand(c.Options.Mountpoint, c.Lazy), c, s.err)
	case ready == nil && !c.Options.Foreground && !c.Fake:
		// The background process reports its errors itself, on the same stderr.
		code, err := startBackground(args)
		if err != nil {
			return report(err, c, s.err)
		}
		return code
	}
	return report(serve(c, ready, s.err), c, s.err)
}
