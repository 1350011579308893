package main

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/search"
	"sessionfs/source"
)

// sourceTree is the tree that a mount of SOURCE shows, for a command without a mount.
type sourceTree struct {
	*source.MountTree
	flags *sourceFlags
	// within are directories: the sessions in them and below them count for searches and sums; none for all.
	within []string
}

// searcher returns a searcher of the sessions in src.within. It finds at most limit hits, 0 for all. A query, unless
// it is nil, chooses the sessions.
func (src *sourceTree) searcher(query *search.Query, limit int) (*search.Searcher, error) {
	searcher, err := src.Searcher(query, limit)
	if err != nil {
		return nil, err
	}
	searcher.Within = src.within
	return searcher, nil
}

// onSource makes a command work on SOURCE, and returns it: it adds the flags of SOURCE, opens it, calls do with it,
// and closes it afterwards. args are the words of the command line. Where the arguments are paths, SOURCE is the one
// that they lie in, if any (docs/design.md section 8, Commands without a mount).
func onSource(
	are source.Arguments, cmd *cobra.Command, do func(cmd *cobra.Command, src *sourceTree, args []string) error,
) *cobra.Command {
	writes := cmd.Name() == "write"
	flags := sourceFlags{
		args:      are,
		one:       slices.Contains(ofOneAgent, cmd.Name()),
		ids:       are == source.Sessions || writes,
		writes:    writes,
		sourceArg: cmd.Name() == "stats",
	}
	flags.add(cmd)
	cmd.ValidArgsFunction = flags.complete
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := flags.open(cmd, args)
		if err != nil {
			return err
		}
		defer src.Close()
		return do(cmd, src, args)
	}
	return cmd
}

// sourceFlags are the flags of the commands that work on SOURCE.
type sourceFlags struct {
	source  string
	options []string
	demo    bool
	debug   bool
	args    source.Arguments
	one     bool // the command is one of ofOneAgent
	ids     bool // ids of sessions are completed
	writes  bool // files that take lines are completed
	// sourceArg says that an argument is SOURCE.
	sourceArg bool
}

// sourceFlagNames are their names.
var sourceFlagNames = []string{"source", "options", "demo", "debug"}

// add adds the flags to a command.
func (f *sourceFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	where := "a PATH"
	if f.args == source.Words || f.args == source.AnyWords {
		where = "."
	}
	flags.StringVarP(&f.source, "source", "s", "", "the agent `DIR`, if not that of "+where+" or the default")
	flags.StringArrayVarP(&f.options, "options", "o", nil, "mount `OPTIONS`, such as redact, separated by commas")
	flags.BoolVar(&f.demo, "demo", false, "work on a built-in sample store; changes are not kept")
	flags.BoolVar(&f.debug, "debug", false, "log to stderr")
	_ = cmd.MarkFlagDirname("source") // the flags exist
	_ = cmd.RegisterFlagCompletionFunc("options", completeOptions)
}

// open opens SOURCE. Callers must close it.
func (f *sourceFlags) open(cmd *cobra.Command, args []string) (*sourceTree, error) {
	name := f.source
	if f.sourceArg && len(args) > 0 {
		if name != "" {
			return nil, refuse(exitUsage, "%s: SOURCE is given twice: %s, and by -s", cmd.Name(), args[0])
		}
		name = args[0]
		args = nil
	}
	at, err := source.Find(source.Request{
		Demo: f.demo,
		Name: name,
		Args: args,
		Kind: f.args,
		One:  f.one,
	})
	if err != nil {
		return nil, err
	}
	at.Empty = cmd.Name() == "import"
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	opened, err := at.OpenTree(ctx, f.args, f.options, f.debug, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	return &sourceTree{MountTree: opened, flags: f}, nil
}

// ofOneAgent are the commands that work on the default SOURCE where none is named: they change it,
// or pack its files.
var ofOneAgent = []string{"bundle", "tar", "write"}

// sayLeftOut says on stderr which files a list left out.
func (src *sourceTree) sayLeftOut(c *console) {
	left := src.LeftOut()
	if left != "" {
		fmt.Fprintln(c.err, "sessionfs: warning:", names.Visible(left))
	}
}

// reasonOf words an error as people know it from ls and cat: the path, then the reason. An
// argument, a file name or an id in it cannot control a terminal.
func reasonOf(err error) string {
	text := strings.TrimSpace(err.Error())
	if at, ok := err.(*iofs.PathError); ok { // not one within an error that says more
		text = names.Visible(at.Path) + ": " + at.Err.Error()
	}
	return names.VisibleExcept(mountopts.WithoutPassword(text), "\n") // of a URL that was given where none belongs
}

// eachPath calls do for each path that arguments, which may be patterns, stand for, as each does.
func (src *sourceTree) eachPath(ctx context.Context, c *console, args []string, do func(path string) error) error {
	paths, err := src.Expand(args...)
	if err != nil {
		return err
	}
	return each(ctx, c, paths, do)
}

// each calls do for each of all. One that fails is reported and the others are still done; the
// status is then 1. An end of the output or an interrupt ends all.
func each[T any](ctx context.Context, c *console, all []T, do func(T) error) error {
	failed := false
	for _, it := range all {
		err := do(it)
		switch {
		case err == nil:
			continue
		case errors.Is(err, syscall.EPIPE), ctx.Err() != nil:
			return err
		}
		c.sayError(err)
		failed = true
	}
	if failed {
		return ended(exitFailure)
	}
	return nil
}
