package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"sessionfs/mountopts"
)

func main() {
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// run is the command; it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	if status, ok := answer(stderr); ok {
		return status
	}
	ready := takeReadyPipe()
	c, err := mountopts.Parse(args, os.Getenv)
	if err != nil {
		err = refuse(exitUsage, "%s\nTry 'sessionfs --help'.", err)
		return report(err, c, stderr)
	}
	switch {
	case c.Action == mountopts.Help:
		fmt.Fprint(stdout, mountopts.Usage(), exitHelp)
		return exitOK
	case c.Action == mountopts.Version:
		fmt.Fprintln(stdout, "sessionfs", version(buildHash))
		return exitOK
	case c.Action == mountopts.Unmount:
		return report(unmountCommand(c.Options.Mountpoint, c.Lazy), c, stderr)
	case ready == nil && !c.Options.Foreground && !c.Fake:
		// The background process reports its errors itself, on the same stderr.
		code, err := startBackground(args)
		if err != nil {
			return report(err, c, stderr)
		}
		return code
	}
	return report(serve(c, ready, stderr), c, stderr)
}

// report prints err and returns the exit status for it.
func report(err error, c mountopts.Command, stderr io.Writer) int {
	if err != nil {
		fmt.Fprintf(stderr, "sessionfs: %s\n", strings.TrimSpace(err.Error()))
	}
	return exitStatus(err, c)
}
