package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// goTo is what a shell is told: s goes to the last session of the working directory, or of one above it, and s QUERY to one that
// is chosen. %s is this program.
var goTo = map[string]string{
	"fish": `function s
    set -l how --here
    test (count $argv) -gt 0; and set how -- "$argv"
    set -l at (%s pick --mounted $how); and cd -- $at
end
`,
	"sh": `s() {
    if [ $# -eq 0 ]; then set -- --here; else set -- -- "$*"; fi
    set -- "$(%s pick --mounted "$@")" && [ -n "$1" ] && cd -- "$1"
}
`,
}

// shellInitCommand is sessionfs shell-init.
func shellInitCommand() *cobra.Command {
	posix := []string{"bash", "zsh", "dash", "sh", "ksh"}
	return &cobra.Command{
		Use:   "shell-init bash|zsh|fish|dash|sh",
		Short: "Print the function s for a shell, which goes to a session",
		Long: "Print the function s for a shell. In a mount, s goes to the directory of the last session of the working directory, or " +
			"of the nearest directory above that has one; s QUERY goes to one that is chosen, as by sessionfs pick.\n\n" +
			"Each time a shell starts:\n  bash, zsh, dash  eval \"$(sessionfs shell-init sh)\"\n  fish             sessionfs shell-init fish | source",
		Example:   "  eval \"$(sessionfs shell-init bash)\"",
		Args:      cobra.ExactArgs(1),
		ValidArgs: append(posix, "fish"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shell := args[0]
			if slices.Contains(posix, shell) {
				shell = "sh"
			}
			text, ok := goTo[shell]
			if !ok {
				return refuse(exitFailure, "shell-init: nothing for %q; there is something for %s, fish", shell, strings.Join(posix, ", "))
			}
			self, err := os.Executable()
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), text, quoted(self))
			}
			return err
		},
	}
}
