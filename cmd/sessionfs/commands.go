package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
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
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true}) // help is a word of mountopts
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return refuse(exitUsage, "%s", err) })
	root.AddCommand(lsCommand(), catCommand(), treeCommand(), tarCommand(), writeCommand(), exportCommand(), checkCommand(), bundleCommand(), importCommand(), searchCommand(), touchedCommand(), sqlTriggerCommand())
	root.AddCommand(systemCommands()...)
	completionCommand(root)
	for _, c := range root.Commands() {
		c.DisableFlagsInUseLine = true // the line says what matters
		if args := c.Args; args != nil {
			c.Args = func(c *cobra.Command, given []string) error {
				if err := args(c, given); err != nil {
					return refuse(exitUsage, "%s: %s\nTry 'sessionfs %s --help'.", c.Name(), err, c.Name())
				}
				return nil
			}
		}
	}
	return root
}

// completionWord is the command that cobra makes: it prints the completions of a shell.
const completionWord = "completion"

// isCommand reports whether a command line is that of a command that needs no mount: its first argument is the name of
// one, and it is not run by mount(8). A directory of such a name is given as ./NAME, or after an option.
func isCommand(root *cobra.Command, args []string) bool {
	if len(args) < 2 || mountopts.IsHelper(args[0]) {
		return false
	}
	name := args[1]
	if name == "help" && len(args) == 3 {
		name = args[2]
	}
	if strings.HasPrefix(name, cobra.ShellCompRequestCmd) || name == completionWord {
		return true
	}
	return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
}

// exitBrokenPipe is the status of a shell's child that died of SIGPIPE.
const exitBrokenPipe = exitSignal + int(unix.SIGPIPE)

// runCommand runs a command that needs no mount; it returns the exit status. An interrupt ends what it does, and what it
// has to tidy up is tidied up; a second one kills it.
func runCommand(root *cobra.Command, args []string, s streams) int {
	signal.Ignore(unix.SIGPIPE) // the reader of the output may end first
	ctx, release := untilSignal(context.Background())
	defer release()
	if args[0] == "help" {
		args = []string{args[1], "--help"}
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil { // it was done all the same
		return exitOK
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
		if err == nil || errors.As(err, &r) && r.text == "" || errors.Is(err, syscall.EPIPE) {
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

const (
	// completeLimit is how long a shell waits for a completion at most.
	completeLimit = 2 * time.Second
	// maxCompletions is how many names are offered.
	maxCompletions = 500
)

// completeMount offers what a command line that mounts goes on with. cobra adds the names of commands; a shell that is told
// to look for directories drops those.
func completeMount(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if cmd.Flags().Changed("unmount") { // a shell that looks for directories would wait for a mount that hangs
		return ourMountpoints(), cobra.ShellCompDirectiveNoFileComp
	}
	begins := func(c *cobra.Command) bool { return !c.Hidden && strings.HasPrefix(c.Name(), typed) }
	if len(args) == 0 && slices.ContainsFunc(cmd.Commands(), begins) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeOptions offers the options of -o that have an effect, behind those that have been typed.
func completeOptions(_ *cobra.Command, _ []string, typed string) (offers []cobra.Completion, _ cobra.ShellCompDirective) {
	before, begun := "", typed
	if at := strings.LastIndexByte(typed, ','); at >= 0 {
		before, begun = typed[:at+1], typed[at+1:]
	}
	for _, word := range mountopts.OptionWords() {
		if strings.HasPrefix(word, begun) {
			offers = append(offers, before+word)
		}
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// complete offers the paths of the tree that begin with what has been typed. An error offers nothing.
func (f *sourceFlags) complete(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	cmd.SetErr(io.Discard)
	src, closeSource, err := f.open(cmd, append(args, typed))
	if err != nil {
		return nil, nothing
	}
	defer closeSource()
	ctx, cancel := context.WithTimeout(context.Background(), completeLimit)
	defer cancel()
	dir, begun := "", typed
	if at := strings.LastIndexByte(typed, '/'); at >= 0 {
		dir, begun = typed[:at+1], typed[at+1:]
	}
	src.FS = src.With(ctx)
	names, err := src.ReadDir(clean(dir))
	if err != nil {
		return nil, nothing
	}
	var offers []cobra.Completion
	directive := nothing
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), begun) || n.Name()[0] == '.' && begun == "" || len(offers) == maxCompletions {
			continue
		}
		offer := dir + n.Name()
		isDir := n.IsDir()
		if n.Type() == iofs.ModeSymlink {
			info, err := src.Stat(clean(offer))
			isDir = err == nil && info.IsDir()
		}
		if isDir { // the path goes on
			offer += "/"
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		offers = append(offers, offer)
	}
	return offers, directive
}

// completionCommand adds the command that prints completions. Those for fish are mended.
func completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	fish, _, err := root.Find([]string{completionWord, "fish"})
	if err != nil {
		return // cobra has no such command any more
	}
	fish.RunE = func(cmd *cobra.Command, _ []string) error {
		bare, err := cmd.Flags().GetBool("no-descriptions")
		if err != nil {
			return err
		}
		var script bytes.Buffer
		if err := root.GenFishCompletion(&script, !bare); err != nil {
			return err
		}
		_, err = io.WriteString(cmd.OutOrStdout(), fishWords.Replace(script.String()))
		return err
	}
}

// fishWords makes the completions of fish pass on the words that are typed as the shell would: cobra escapes the last one
// once more, so that nothing completes a name with a space, and splits those before it at spaces. A command substitution
// among them, which cobra runs, is not run.
var fishWords = strings.NewReplacer(
	"    set -l args (commandline -opc)\n", `    set -l args
    for arg in (commandline -opc)
        set arg (string replace -r -- '^~(?=/|$)' $HOME $arg)
        string match -qr -- '[^\w$~%+,./:=@-]' $arg; and set arg (string escape -- $arg)
        set -a args $arg
    end
`,
	"    set -l lastArg (string escape -- (commandline -ct))\n", `    set -l typed (commandline -ct)
    set -l lastArg (string escape -- (string unescape -- "$typed"; or string unescape -- "$typed'"; or string unescape -- "$typed\""))
`,
)
