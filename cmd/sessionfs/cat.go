package main

import (
	"io"

	"github.com/spf13/cobra"
)

// catCommand is sessionfs cat: it prints files of the tree, through links, as cat does in a mount.
func catCommand() *cobra.Command {
	return onSource(&cobra.Command{
		Use:     "cat [-s SOURCE] PATH...",
		Short:   "Print files of what a mount would show",
		Example: "  sessionfs cat 'recent/01-*/transcript.md'",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		return src.eachPath(cmd, args, func(path string) error {
			f, err := src.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.CopyBuffer(struct{ io.Writer }{cmd.OutOrStdout()}, f, make([]byte, copySize))
			return err
		})
	})
}

// copySize is how many bytes are copied at a time: what the file system answers at once.
const copySize = 128 << 10
