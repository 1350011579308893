package main

import (
	"bytes"
	"context"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessionfs/mountopts"
)

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
func (f *sourceFlags) complete(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	cmd.SetErr(io.Discard)
	src, closeSource, err := f.open(cmd)
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
