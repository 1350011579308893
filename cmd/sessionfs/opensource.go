package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// source is what a command without a mount works on: the tree that a mount of SOURCE shows.
type source struct {
	*fs.Unmounted
	place
	flags *sourceFlags
	ctx   context.Context // of the command
}

// arguments says what the arguments of a command may be.
type arguments int

const (
	noPaths    arguments = iota // nothing of a mount
	words                       // words; SOURCE is that of the working directory
	treePaths                   // what is in a mount
	anySession                  // sessions, also as files that lie in no agent directory
	anyWords                    // words; SOURCE is that of the working directory, or else of a mount of all agents that has the default
)

// onSource makes a command work on SOURCE: it adds the flags that say where that is and how it is shown, opens it, and
// closes it afterwards, which puts on disk what was typed into new sessions. Where the arguments are paths, SOURCE is the one
// that they lie in, if they lie in any (docs/design.md section 8, Commands without a mount).
func onSource(are arguments, cmd *cobra.Command, do func(cmd *cobra.Command, src *source, args []string) error) *cobra.Command {
	flags := sourceFlags{args: are, ids: are == anySession || cmd.Name() == "write", writes: cmd.Name() == "write"}
	flags.add(cmd)
	cmd.ValidArgsFunction = flags.complete
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, closeSource, err := flags.open(cmd, args)
		if err != nil {
			return err
		}
		defer closeSource()
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
	args    arguments
	ids     bool // ids of sessions are completed
	writes  bool // what takes lines is completed
}

// sourceFlagNames are their names.
var sourceFlagNames = []string{"source", "options", "demo", "debug"}

func (f *sourceFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	where := "a PATH"
	if f.args == words || f.args == anyWords {
		where = "."
	}
	flags.StringVarP(&f.source, "source", "s", "", "the agent `DIR`, if not that of "+where+" or the default")
	flags.StringArrayVarP(&f.options, "options", "o", nil, "mount `OPTIONS`, such as redact, separated by commas")
	flags.BoolVar(&f.demo, "demo", false, "work on a built-in sample store; changes are not kept")
	flags.BoolVar(&f.debug, "debug", false, "log to stderr")
	_ = cmd.MarkFlagDirname("source") // the flags exist
	_ = cmd.RegisterFlagCompletionFunc("options", completeOptions)
}

// open opens SOURCE. Callers must call the function that it returns.
func (f *sourceFlags) open(cmd *cobra.Command, args []string) (src *source, closeSource func(), err error) {
	if f.demo && f.source != "" {
		return nil, nil, refuse(exitUsage, "--demo brings its own SOURCE: leave -s out")
	}
	at := place{Options: mountopts.Options{Demo: f.demo}}
	switch {
	case f.source != "":
		at, err = placeNamed(f.source)
	case !f.demo && f.args != noPaths:
		at, err = placeOf(args, f.args)
	}
	if err != nil {
		return nil, nil, err
	}
	at.Empty = cmd.Name() == "import"
	files, err := at.open(f.options, f.debug, cmd.ErrOrStderr())
	if err != nil {
		at.remove()
		return nil, nil, err
	}
	ctx := cmp.Or(cmd.Context(), context.Background())
	files.FS = files.With(ctx)
	return &source{files, at, f, ctx}, func() {
		files.Close()
		at.remove()
	}, nil
}

// open opens the place with options of a mount.
func (p *place) open(options []string, debug bool, stderr io.Writer) (files *fs.Unmounted, err error) {
	if p.Options, err = mountopts.ParseOptions(p.Options, options, false); err != nil {
		return nil, refuse(exitUsage, "%s", err)
	}
	if p.mountpoint == "" {
		if err := p.resolve(stderr); err != nil {
			return nil, err
		}
	}
	level := slog.LevelError // what is refused the command says itself
	if debug || p.Debug {
		level = slog.LevelDebug
	}
	files, err = fs.Open(p.Options, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})))
	switch {
	case errors.Is(err, fs.ErrOption):
		return nil, refuse(exitUsage, "%s", err)
	case err != nil:
		return nil, refuse(exitSource, "%s", err)
	}
	return files, nil
}

// sayError prints an error and goes on.
func sayError(cmd *cobra.Command, err error) {
	fmt.Fprintln(cmd.ErrOrStderr(), "sessionfs: "+cmd.Name()+": "+reasonOf(err))
}

// reasonOf words an error as people know it from ls and cat: the path, then the reason. An
// argument, a file name or an id in it cannot control a terminal.
func reasonOf(err error) string {
	text := strings.TrimSpace(err.Error())
	if at, ok := err.(*iofs.PathError); ok { // not one within an error that says more
		text = visible(at.Path) + ": " + at.Err.Error()
	}
	return visibleLines(mountopts.WithoutPassword(text)) // of a URL that was given where none belongs
}

// eachPath calls do for each path that arguments stand for.
func (src *source) eachPath(cmd *cobra.Command, args []string, do func(path string) error) error {
	paths, err := src.expand(args...)
	if err != nil {
		return err
	}
	return each(cmd, paths, do)
}

// each calls do for each of all. One that fails is reported and the others are still done; the status is then 1. An end of
// the output or an interrupt ends all.
func each[T any](cmd *cobra.Command, all []T, do func(T) error) error {
	failed := false
	for _, it := range all {
		err := do(it)
		switch {
		case err == nil:
			continue
		case errors.Is(err, syscall.EPIPE), cmd.Context().Err() != nil:
			return err
		}
		sayError(cmd, err)
		failed = true
	}
	if failed {
		return ended(exitFailure)
	}
	return nil
}

// isGone reports whether an error means that a name that was listed is not there any more.
func isGone(err error) bool {
	return errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ESTALE)
}
