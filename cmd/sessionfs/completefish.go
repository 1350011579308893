package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

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
