package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
)

// newRoot returns the tree of commands that need no mount. Each is built by a function that is called here.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "sessionfs [-o OPTIONS] [SOURCE] MOUNTPOINT",
		SilenceErrors: true,
		SilenceUsage:  true,
		// For completions: what mounts is parsed by mountopts.
		Args:              cobra.ArbitraryArgs, // else nothing is completed behind SOURCE
		ValidArgsFunction: completeMount,
		Run:               func(*cobra.Command, []string) {},
	}
	root.Flags().AddFlagSet(mountopts.Flags())
	_ = root.RegisterFlagCompletionFunc("options", completeOptions) // the flag exists
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return refuse(exitUsage, "%s: %s (see 'sessionfs help %s')", c.Name(), err, c.Name())
	})
	root.SetHelpFunc(printHelp)
	help := helpCommand(root)
	root.SetHelpCommand(help)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(lsCommand(), catCommand(), treeCommand(), tarCommand(), writeCommand(), exportCommand(), checkCommand(), bundleCommand(), importCommand(),
		pickCommand(), searchCommand(), touchedCommand(), statsCommand(), showCommand(), logCommand(), diffCommand(), sqlTriggerCommand(),
		completionCommand(root), shellInitCommand(), fzfCommand(), help, versionCommand())
	root.AddCommand(systemCommands()...)
	for _, c := range root.Commands() {
		c.DisableFlagsInUseLine = true // the line says what matters
		if args := c.Args; args != nil {
			c.Args = func(c *cobra.Command, given []string) error {
				if err := args(c, given); err != nil {
					return refuse(exitUsage, "%s: %s (see 'sessionfs help %s')", c.Name(), err, c.Name())
				}
				return nil
			}
		}
	}
	return root
}

// isCommand reports whether a command line is that of a command that needs no mount: its first argument is the name of
// one, and it is not run by mount(8). A directory of such a name is given as ./NAME, or after an option.
func isCommand(root *cobra.Command, args []string) bool {
	if len(args) < 2 || mountopts.IsHelper(args[0]) {
		return false
	}
	name := args[1]
	return strings.HasPrefix(name, cobra.ShellCompRequestCmd) ||
		slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) })
}

// exitBrokenPipe is the status of a shell's child that died of SIGPIPE.
const exitBrokenPipe = exitSignal + int(unix.SIGPIPE)

// runCommand runs a command that needs no mount; it returns the exit status. An interrupt ends what it does, and what it
// has to tidy up is tidied up; a second one kills it.
func runCommand(root *cobra.Command, args []string, s streams) int {
	signal.Ignore(unix.SIGPIPE) // the reader of the output may end first
	ctx, release := untilSignal(context.Background())
	defer release()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil { // it was done all the same
		return exitOK
	}
	var said *refusal
	if ctx.Err() != nil && !(errors.As(err, &said) && said.text != "") {
		err = errors.New("interrupted")
	}
	status := exitBrokenPipe
	if !errors.Is(err, syscall.EPIPE) {
		status = report(err, mountopts.Command{}, s.err)
	}
	if ctx.Err() != nil {
		return exitStatus(context.Cause(ctx), mountopts.Command{})
	}
	return status
}

// The statuses of commands that tell what they found, as those of grep. Scripts test for them.
const (
	exitFound   = 0 // for check: nothing is broken
	exitNothing = 1 // for check: something is
	exitNotDone = 2 // they could not look, or not at all of it
)

// endsWithTwo makes such a command end with exitNotDone when it fails.
func endsWithTwo(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var r *refusal
		if err == nil || errors.As(err, &r) && r.text == "" || errors.Is(err, syscall.EPIPE) || cmd.Context().Err() != nil {
			return err
		}
		return refuse(exitNotDone, "%s: %s", cmd.Name(), reasonOf(err))
	}
}

// endingSignals are the signals that end a command.
var endingSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}

// exitSignal and the number of a signal make the status of what a signal ended, as a shell has it.
const exitSignal = 128

// untilSignal returns a context that ends with the first signal that is to end a command; its cause then has the status.
// The next signal kills the process.
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

// exit ends the process with a status. If that is one of a signal, it ends by the signal: a shell then ends the loop that
// somebody interrupted, and a service manager takes it for the end that it asked for. Both show the same status.
func exit(status int) {
	if s := syscall.Signal(status - exitSignal); slices.Contains(endingSignals, os.Signal(s)) {
		signal.Reset(s)
		_ = unix.Kill(unix.Getpid(), s)
		time.Sleep(time.Second) // it comes at once, unless somebody else's handler is in the way
	}
	os.Exit(status)
}
