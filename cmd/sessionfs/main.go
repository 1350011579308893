package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

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
	root := newRoot(s)
	if isCommand(root, args) {
		runtime.UnlockOSThread() // a command has no need of its first thread, and is slower on one alone
		return runCommand(root, args[1:], s)
	}
	if err := mistyped(root, args); err != nil {
		return report(err, mountopts.Command{}, s.err)
	}
	return mount(args, s)
}

// mountCommand parses a command line that mounts, and answers it where that is a matter of words.
func mountCommand(args []string, s streams) (c mountopts.Command, status int, done bool) {
	c, err := mountopts.Parse(args)
	switch {
	case err != nil:
		return c, report(refuse(exitUsage, "%s (see 'sessionfs --help', or 'sessionfs help mount' for all options)", err), c, s.err), true
	case c.Action == mountopts.Help:
		fmt.Fprint(s.out, summary())
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

// The exit statuses. They are part of the interface: scripts test for them.
const (
	exitOK         = 0 // mounted and ready, or unmounted
	exitFailure    = 1 // something else: a bug, a signal before the mount was ready
	exitUsage      = 2 // the command line is wrong
	exitMountpoint = 3 // MOUNTPOINT cannot be used: missing, no directory, not empty, mounted already, in SOURCE
	exitSource     = 4 // SOURCE cannot be used: missing, no directory, unreadable
	exitFuse       = 5 // FUSE cannot be used: no /dev/fuse, no fusermount3, not permitted
	exitMount      = 6 // the mount failed for another reason
	exitUnmount    = 7 // -u: not mounted, in use, somebody else's
)

// The exit statuses as a mount helper: mount(8) returns them to the user as its own.
const (
	helperUsage = 1  // incorrect invocation or permissions
	helperMount = 32 // mount failure
)

// exitHelp describes the statuses for `sessionfs help mount`.
const exitHelp = `
Exit status: 0 ready (or unmounted), 1 failure, 2 usage, 3 MOUNTPOINT, 4 SOURCE,
5 FUSE not available or not permitted, 6 the mount failed, 7 the unmount failed.
As mount.sessionfs: 1 usage, 32 any other failure, as mount(8) has them.
`

// refusal is an error that the user can correct, with its exit status.
type refusal struct {
	code int
	text string // what happened, with which path, and what to do; empty if that has been said
}

func (r *refusal) Error() string { return r.text }

// refuse returns a refusal.
func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// ended ends a command with a status when all has been said.
func ended(code int) error { return &refusal{code: code} }

// exitStatus returns the exit status for err.
func exitStatus(err error, c mountopts.Command) int {
	code := exitOK
	var r *refusal
	switch {
	case errors.As(err, &r):
		code = r.code
	case err != nil:
		code = exitFailure
	}
	switch {
	case !c.Helper || code == exitOK:
		return code
	case code == exitUsage:
		return helperUsage
	default:
		return helperMount
	}
}

// release is the version that a packager gives a build from an archive of the source, where the
// tool chain finds no tag:
//
//	go build -ldflags '-X main.release=v1.2.3' ./cmd/sessionfs
var release string

// version returns what this program was built from: the packager's version, else what the tool chain makes of the tag and the
// commit of the working copy, which some builds do not know (-buildvcs=false, an archive of the source).
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describe(release, info)
}

func describe(release string, info *debug.BuildInfo) string {
	v := release
	if v == "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	var with []string
	if v == "" {
		v = "unknown"
		with = append(with, "built without its commit")
	}
	if info.GoVersion != "" {
		with = append(with, info.GoVersion)
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/hanwen/go-fuse/v2" {
			with = append(with, "go-fuse "+dep.Version)
		}
	}
	return fmt.Sprintf("%s (%s)", v, strings.Join(with, ", "))
}
