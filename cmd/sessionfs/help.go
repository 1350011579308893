package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
)

// helpCommand is sessionfs help.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Tell about a command, or with 'mount' all options of a mount",
		Example: "  sessionfs help search",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
			for _, c := range root.Commands() {
				if c.IsAvailableCommand() {
					words = append(words, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return append(words, cobra.CompletionWithDesc("mount", "all options of a mount")), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				_, err := io.WriteString(cmd.OutOrStdout(), summary())
				return err
			case args[0] == "mount":
				_, err := io.WriteString(cmd.OutOrStdout(), usage())
				return err
			}
			about, _, err := root.Find(args)
			if err != nil || about == root {
				return refuse(exitFailure, "there is no command %q%s ('sessionfs help' lists all)", args[0], didYouMean(root, args[0]))
			}
			return about.Help()
		},
	}
}

// versionCommand is sessionfs version.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Example:           "  sessionfs version",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "sessionfs", version())
			return err
		},
	}
}

// printHelp prints the help of a command, which fits a terminal of 24 lines.
func printHelp(c *cobra.Command, _ []string) {
	out := c.OutOrStdout()
	fmt.Fprintf(out, "Usage: %s\n\n%s", c.UseLine(), mountopts.Wrap(cmp.Or(c.Long, c.Short+".")))
	if c.Example != "" {
		fmt.Fprintf(out, "\nExample:\n%s\n", c.Example)
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	hidden := ""
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if c.LocalFlags().Lookup("source") != nil && slices.Contains(sourceFlagNames, f.Name) {
			hidden = commonHelp
		} else if f.Name != "help" {
			own.AddFlag(f)
		}
	})
	if text := own.FlagUsagesWrapped(mountopts.HelpWidth) + hidden; text != "" {
		fmt.Fprintf(out, "\nOptions:\n%s", text)
	}
}

// commonHelp is the help of the options that all commands on SOURCE have.
const commonHelp = "  -s DIR, -o OPTIONS, --demo, --debug   as for all commands ('man sessionfs')\n"

// summary is the help that fits a screen.
func summary() string { return mountopts.Summary(strings.Join(otherHomes(), ", ")) }

// usage is the help of a mount.
func usage() string {
	var of []string
	for _, a := range agents.All() {
		of = append(of, a.Title+"'s "+strings.Join(a.Homes, " or "))
	}
	return mountopts.Usage(strings.Join(of, ", ")) + exitHelp
}

// otherHomes returns the usual agent directories besides omp's, for people.
func otherHomes() []string {
	homes := []string{"~/.pi/agent"}
	for _, a := range agents.All() {
		homes = append(homes, a.InHome())
	}
	return homes
}

// didYouMean names the commands that somebody may have meant by a word that is none.
func didYouMean(root *cobra.Command, word string) string {
	root.SuggestionsMinimumDistance = 1 // letters that differ
	if len(word) > 4 {
		root.SuggestionsMinimumDistance = 2
	}
	meant := root.SuggestionsFor(word)
	if len(meant) == 0 || word == "" {
		return ""
	}
	return "; did you mean " + strings.Join(meant, " or ") + "?"
}

// mistyped refuses a command line that begins with what is nearly a command. What is there, or has a slash, is SOURCE or
// MOUNTPOINT.
func mistyped(root *cobra.Command, args []string) error {
	if len(args) < 2 || mountopts.IsHelper(args[0]) || strings.HasPrefix(args[1], "-") || strings.Contains(args[1], "/") {
		return nil
	}
	if _, err := os.Lstat(args[1]); err == nil {
		return nil
	}
	if meant := didYouMean(root, args[1]); meant != "" {
		return refuse(exitUsage, "there is neither a command nor a directory %q%s", args[1], meant)
	}
	return nil
}
