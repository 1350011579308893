// Command sessionfs mounts the data directory of a coding agent as a file system.
//
//	sessionfs [-o OPTIONS] [SOURCE] MOUNTPOINT
//	sessionfs --demo MOUNTPOINT
//	sessionfs -u [-z] MOUNTPOINT
//	sessionfs status [--json] [MOUNTPOINT]
//	sessionfs help | version
//	sessionfs ls | cat | … [-s SOURCE] PATH...
//
// It returns when the mount is ready; a copy of it, without a terminal, serves the mount until that
// is unmounted or a signal ends it (docs/design.md section 8). main.go has the exit statuses.
//
// Commands of the last form show the same without a mount; [newRoot] lists them. They build for
// other systems than Linux.
//
// It starts no other programs than fusermount3, itself and a pager; sessionfs pick also starts fzf
// and, on request, the agent; sessionfs mcp --install the commands of agents that change their servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

func main() {
	exit(run(os.Args, streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run is the command; it returns the exit status. A command that needs no mount is known by its
// name, which must be the first argument: everything else is [mount], whose arguments may be any
// directories.
func run(args []string, s streams) int {
	if isCommand(args) {
		runtime.UnlockOSThread() // a command has no need of its first thread, and is slower on one alone
		return runCommand(newRoot(s, args[1]), args[1:], s)
	}
	var err error
	switch {
	case mountopts.IsHelper(args[0]): // mount(8) passes SOURCE and MOUNTPOINT, which may be any words
	case len(args) == 1:
		err = nothingAsked()
	case args[1] != "" && args[1][0] != '-' && !strings.Contains(args[1], "/"):
		err = mistyped(args)
	}
	if err != nil {
		return report(err, false, s.err)
	}
	return mount(args, s)
}

// mountCommand parses a command line that mounts. A wrong line is reported, and help and the version are
// printed here: then done is set, and status is the exit status.
func mountCommand(args []string, s streams) (c mountopts.Command, status int, done bool) {
	c, err := mountopts.Parse(args)
	switch {
	case err != nil:
		wrong := refuse(exitUsage, "%s (see 'sessionfs --help', or 'sessionfs help mount' for all options)", err)
		return c, report(wrong, c.Helper, s.err), true
	case c.Help:
		fmt.Fprint(s.out, summary())
		return c, exitOK, true
	case c.Version:
		fmt.Fprintln(s.out, "sessionfs", version())
		return c, exitOK, true
	}
	return c, exitOK, false
}

// report prints err, unless it is nil or has no text, and returns the exit status for it. helper says that
// mount(8) has started the program, and expects its own statuses.
func report(err error, helper bool, stderr io.Writer) int {
	if err != nil && err.Error() != "" {
		fmt.Fprintf(stderr, "sessionfs: %s\n", reasonOf(err))
	}
	return exitStatus(err, helper)
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

// status is an exit status, as the kind of a refusal.
type status int

func (s status) Error() string { return fmt.Sprint("status ", int(s)) }

// refuse returns a refusal with an exit status, and a reason that is formatted as by fmt.Sprintf.
func refuse(code int, format string, args ...any) error {
	return fs.Refuse(status(code), format, args...)
}

// ended returns an error that ends a command with a status and prints nothing, as all has been said.
func ended(code int) error { return &fs.Refusal{Kind: status(code)} }

// statuses are the exit statuses of refusals by package fs. The others are failures.
var statuses = map[error]status{
	fs.ErrUsage: exitUsage, fs.ErrOption: exitUsage, fs.ErrMountpoint: exitMountpoint, fs.ErrSource: exitSource,
	fs.ErrFuse: exitFuse, fs.ErrMount: exitMount, fs.ErrUnmount: exitUnmount,
}

// exitStatus returns the exit status for err, exitOK for nil: of a mount helper, which has other statuses than
// a command, if helper is set.
func exitStatus(err error, helper bool) int {
	code, hasStatus := errors.AsType[status](err)
	if err != nil && !hasStatus {
		code = exitFailure
		for refused, refusedStatus := range statuses {
			if errors.Is(err, refused) {
				code = refusedStatus
			}
		}
	}
	switch {
	case !helper || code == exitOK:
		return int(code)
	case code == exitUsage:
		return helperUsage
	}
	return helperMount
}

// release is the newest version of CHANGELOG.md. scripts/package sets the version of a package:
//
//	go build -ldflags '-X main.release=v1.2.3' ./cmd/sessionfs
var release = "v0.1.0"

// version returns the version of this program, and the commit of its source.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describe(release, info)
}

// describe returns a release with the details of a build in parentheses: the commit of a build between
// versions, where the tool chain knows it, and the versions of Go and go-fuse.
func describe(release string, info *debug.BuildInfo) string {
	var details []string
	built := info.Main.Version
	if built != "" && built != "(devel)" && built != release {
		details = append(details, built)
	}
	if info.GoVersion != "" {
		details = append(details, info.GoVersion)
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/hanwen/go-fuse/v2" {
			details = append(details, "go-fuse "+dep.Version)
		}
	}
	return fmt.Sprintf("%s (%s)", release, strings.Join(details, ", "))
}

// commands make those that need no mount, by their names; nil where this system has none. [newRoot]
// adds help and cobra's completion.
var commands = map[string]func() *cobra.Command{
	"ls": lsCommand, "cat": catCommand, "tree": treeCommand, "tar": tarCommand, "write": writeCommand,
	"export": exportCommand, "check": checkCommand, "bundle": bundleCommand, "import": importCommand,
	"pick": pickCommand, "search": searchCommand, "touched": touchedCommand, "stats": statsCommand,
	"show": showCommand, "log": logCommand, "diff": diffCommand, "sql-trigger": sqlTriggerCommand,
	"shell-init": shellInitCommand, fzfWord: fzfCommand, "nfs": nfsCommand, "skill": skillCommand,
	"blame": blameCommand, "fork": forkCommand, "resume": resumeSessionCommand, "keep": keepCommand, "version": versionCommand,
	"mcp": mcpCommand, "demo": demoCommand, "status": statusCommand, "umount": umountCommand, "unmount": umountCommand,
}

// newRoot returns the tree of commands that need no mount: the called one alone, as to make all takes 0.4 ms, or
// all for help, for completions and for a name that is no command.
func newRoot(s streams, called string) *cobra.Command {
	root := &cobra.Command{
		Use:           "sessionfs [-o OPTIONS] [SOURCE] MOUNTPOINT",
		SilenceErrors: true,
		SilenceUsage:  true,
		// For completions: mountopts parses command lines that mount.
		Args:              cobra.ArbitraryArgs, // else nothing is completed behind SOURCE
		ValidArgsFunction: completeMount,
		Run:               func(*cobra.Command, []string) {},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(usageError)
	root.SetHelpFunc(printHelp)
	makeCommand := commands[called]
	if makeCommand == nil {
		addCommands(root)
	} else {
		root.AddCommand(makeCommand())
		root.CompletionOptions.DisableDefaultCmd = true
	}
	for _, c := range root.Commands() {
		checkArgs(c)
	}
	return root
}

// addCommands adds all commands to root, with the flags of a mount, for completions, and help.
func addCommands(root *cobra.Command) {
	root.Flags().AddFlagSet(mountopts.Flags())
	_ = root.RegisterFlagCompletionFunc("options", completeOptions) // the flag exists
	for name, makeCommand := range commands {
		if makeCommand != nil && name != "unmount" { // an alias
			root.AddCommand(makeCommand())
		}
	}
	addCompletions(root)
	help := helpCommand(root) // after the others, which it lists
	root.SetHelpCommand(help)
	root.AddCommand(help)
}

// checkValues refuses the command line of a command if an option in it would become the value of
// another one. Its first word is the name of the command.
func checkValues(root *cobra.Command, args []string) error {
	if commands[args[0]] == nil { // one of cobra's own
		return nil
	}
	command, words, err := root.Find(args)
	if err != nil || command.DisableFlagParsing {
		return nil // running it says so
	}
	err = mountopts.CheckValues(command.Flags(), words)
	if err == nil {
		return nil
	}
	return command.FlagErrorFunc()(command, err)
}

// isCommand reports whether a command line is for a command that needs no mount: its first
// argument is the name of one, and it is not run by mount(8). A directory of such a name is given
// as ./NAME, or after an option.
func isCommand(args []string) bool {
	if len(args) < 2 || mountopts.IsHelper(args[0]) {
		return false
	}
	name := args[1]
	if name == "help" || name == "completion" {
		return true
	}
	return commands[name] != nil || strings.HasPrefix(name, cobra.ShellCompRequestCmd)
}

// exitBrokenPipe is the status of a shell's child that died of SIGPIPE.
const exitBrokenPipe = exitSignal + int(unix.SIGPIPE)

// runCommand runs a command that needs no mount, and returns the exit status. An interrupt ends the
// command, which tidies up; a second one kills it.
func runCommand(root *cobra.Command, args []string, s streams) int {
	signal.Ignore(unix.SIGPIPE) // the reader of the output may end first
	ctx, release := untilSignal(context.Background())
	defer release()
	root.SetArgs(args)
	err := checkValues(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil { // it was done, even if an interrupt came meanwhile
		return exitOK
	}
	isInterrupted := ctx.Err() != nil
	refusal, isRefusal := errors.AsType[*fs.Refusal](err)
	hasReason := isRefusal && refusal.Text != ""
	if isInterrupted && !hasReason { // the error only says that a context has ended
		err = errors.New("interrupted")
	}
	status := exitBrokenPipe
	if !errors.Is(err, syscall.EPIPE) {
		status = report(err, false, s.err)
	}
	if isInterrupted {
		return exitStatus(context.Cause(ctx), false)
	}
	return status
}

// The statuses of commands that search, as those of grep. Scripts test for them.
const (
	exitFound   = 0 // for check: nothing is broken
	exitNothing = 1 // for check: something is
	exitNotDone = 2 // they could not look, or not at all of it
)

// hasOwnStatus reports whether an error ends a command with another status than exitNotDone.
func hasOwnStatus(err error) bool {
	r, isRefusal := errors.AsType[*fs.Refusal](err)
	if isRefusal && r.Text == "" {
		return true
	}
	return errors.Is(err, fs.ErrUnread) || errors.Is(err, syscall.EPIPE)
}

// endsWithTwo makes a command that searches end with exitNotDone when it fails. It wraps the command's RunE,
// which must be set before.
func endsWithTwo(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		isInterrupted := cmd.Context().Err() != nil
		if err == nil || hasOwnStatus(err) || isInterrupted {
			return err
		}
		return refuse(exitNotDone, "%s: %s", cmd.Name(), reasonOf(err))
	}
}

// endingSignals are the signals that end a command.
var endingSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}

// exitSignal plus the number of a signal is the status of a program that the signal ended, as in
// shells.
const exitSignal = 128

// untilSignal returns a context that ends with the first signal that is to end a command; its cause
// then has the status. The next signal kills the process. release ends the context, and the signals then
// have their usual effects.
func untilSignal(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	for _, s := range endingSignals {
		if !signal.Ignored(s) { // as under nohup
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(ended(exitSignal + int(s.(syscall.Signal))))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// exit ends the process with a status. If that is one of a signal, it ends by the signal: a shell
// then ends the loop that somebody interrupted, and a service manager takes it for the end that it
// asked for. Both show the same status.
func exit(status int) {
	s := syscall.Signal(status - exitSignal)
	if slices.Contains(endingSignals, os.Signal(s)) {
		signal.Reset(s)
		_ = unix.Kill(unix.Getpid(), s)
		time.Sleep(time.Second) // it comes at once, unless somebody else's handler is in the way
	}
	os.Exit(status)
}
