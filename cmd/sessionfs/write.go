package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sessionfs/nodes/direct"
	"sessionfs/source"
)

// writable are all control files that take lines.
var writable = []string{"append", "cwd", "fork", "labels", leafLink, newSession, "title"}

// newSession is the control file that creates sessions, leafLink the link that tells where a
// conversation stands.
const (
	newSession = "new-session"
	leafLink   = "leaf"
)

// writeOptions are the options of write.
type writeOptions struct {
	path string // of a control file, with patterns
}

// writeCommand is sessionfs write.
func writeCommand() *cobra.Command {
	return onSource(source.Paths, &cobra.Command{
		Use:   "write [-s SOURCE] PATH < LINES",
		Short: "Write to a control file: append, labels, title, fork, new-session; or leaf",
		Long: "Write the lines of the standard input to a control file of what a mount would show, or the target " +
			"of the link leaf. Answers are printed. What is refused is told with its reason, and the status is 1: " +
			"the lines before it have taken effect, those behind it have not.",
		Example: "  echo 'A better title' | sessionfs write by-id/019d3d9/title",
		Args:    oneArg,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		return runWrite(cmd.Context(), writeOptions{path: args[0]}, src, consoleOf(cmd))
	})
}

// runWrite writes the standard input to a control file, and prints the answers. A pattern must stand for one path.
func runWrite(ctx context.Context, o writeOptions, src *sourceTree, c *console) error {
	paths, err := src.Expand(o.path)
	switch {
	case err != nil:
		return err
	case len(paths) > 1:
		return refuse(exitUsage, "write: %s stands for %d paths; one is written at a time", o.path, len(paths))
	}
	err = src.WriteLines(ctx, paths[0], c.in, c.out)
	if errors.Is(err, direct.ErrUnended) {
		return refuse(exitFailure, "%s", err)
	}
	return err
}
