package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// console is the standard streams of a command, with its name for messages.
type console struct {
	streams
	name string
}

// consoleOf returns the console of a command.
func consoleOf(cmd *cobra.Command) *console {
	return &console{
		streams: streams{
			in:  cmd.InOrStdin(),
			out: cmd.OutOrStdout(),
			err: cmd.ErrOrStderr(),
		},
		name: cmd.Name(),
	}
}

// sayError prints an error and goes on.
func (c *console) sayError(err error) {
	fmt.Fprintln(c.err, "sessionfs: "+c.name+": "+reasonOf(err))
}
