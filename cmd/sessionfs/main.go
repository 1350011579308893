package main

import (
	"fmt"
	"io"
	"os"

	"sessionfs/mountopts"
)

func main() {
	exit(run(os.Args, streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the command; it returns the exit status. A command that needs no mount is known by its name, which must be the
// first argument: everything else is [mount], whose arguments may be any directories.
func run(args []string, s streams) int {
	if root := newRoot(s); isCommand(root, args) {
		return runCommand(root, args[1:], s)
	}
	return mount(args, s)
}

// mountCommand parses a command line that mounts, and answers it where that is a matter of words.
func mountCommand(args []string, s streams) (c mountopts.Command, status int, done bool) {
	c, err := mountopts.Parse(args)
	switch {
	case err != nil:
		return c, report(refuse(exitUsage, "%s\nTry 'sessionfs --help'.", err), c, s.err), true
	case c.Action == mountopts.Help:
		fmt.Fprint(s.out, mountopts.Summary())
		return c, exitOK, true
	case c.Action == mountopts.HelpMount:
		fmt.Fprint(s.out, mountopts.Usage(), exitHelp)
		return c, exitOK, true
	case c.Action == mountopts.Version:
		fmt.Fprintln(s.out, "sessionfs", version())
		return c, exitOK, true
	}
	return c, exitOK, false
}

// report prints err and returns the exit status for it.
func report(err error, c mountopts.Command, stderr io.Writer) int {
	if err != nil && err.Error() != "" {
		fmt.Fprintf(stderr, "sessionfs: %s\n", reasonOf(err))
	}
	return exitStatus(err, c)
}
