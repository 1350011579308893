package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
)

// noArgs refuses arguments of a command that has none.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("no argument is expected here, and %q is one", args[0])
}

// oneArg refuses another number of arguments than one.
func oneArg(cmd *cobra.Command, args []string) error { return expectArgs(cmd, args, 1, 1) }

// twoArgs refuses another number of arguments than two.
func twoArgs(cmd *cobra.Command, args []string) error { return expectArgs(cmd, args, 2, 2) }

// someArgs refuses a command line without an argument.
func someArgs(cmd *cobra.Command, args []string) error { return expectArgs(cmd, args, 1, len(args)) }

// atMostOneArg refuses a second argument.
func atMostOneArg(cmd *cobra.Command, args []string) error { return expectArgs(cmd, args, 0, 1) }

// expectArgs refuses fewer arguments than least, and more than most, which is 1 or 2, or the number of the
// arguments where there is no limit.
func expectArgs(cmd *cobra.Command, args []string, least, most int) error {
	isMissing := len(args) < least
	isMore := len(args) > most
	usage := cmd.UseLine()
	switch {
	case isMissing && len(args) == 0:
		return errors.New("an argument is missing; type: " + usage)
	case isMissing:
		return errors.New("one more argument is expected; type: " + usage)
	case isMore && most == 1:
		return fmt.Errorf("one argument is expected, and %q is one more; in quotes several words are one argument; "+
			"type: %s", args[most], usage)
	case isMore:
		return fmt.Errorf("two arguments are expected, and %q is one more; type: %s", args[most], usage)
	}
	return nil
}

// exclusive makes a command refuse more than one of some options. It wraps the command's check of arguments,
// which must be set before.
func exclusive(cmd *cobra.Command, options ...string) {
	cmd.MarkFlagsMutuallyExclusive(options...) // completions then offer one of them alone
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		var given []string
		for _, name := range options {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return fmt.Errorf("%s contradict each other: give one of them", strings.Join(given, " and "))
		}
		return check(cmd, args)
	}
}

// checkArgs gives the refusals of arguments, by a command and by those below it, the exit status of a wrong
// command line, and its hint where to read on.
func checkArgs(c *cobra.Command) {
	c.DisableFlagsInUseLine = true // the line has the important ones
	check := c.Args
	if check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			return c.FlagErrorFunc()(c, check(c, args))
		}
	}
	for _, below := range c.Commands() {
		checkArgs(below)
	}
}

// usageError refuses a wrong command line.
func usageError(c *cobra.Command, err error) error {
	return usageErrorWith(c, err, fmt.Sprintf("see 'sessionfs help %s'", c.Name()))
}

// usageErrorWith refuses a wrong command line, and says where to read on. For nil it returns nil.
func usageErrorWith(c *cobra.Command, err error, readOn string) error {
	if err == nil {
		return nil
	}
	return refuse(exitUsage, "%s: %s (%s)", c.Name(), mountopts.InWords(c.Flags(), err), readOn)
}

// job is a purpose that people look for by other words than the name of its command.
type job struct {
	words string // separated by blanks
	how   string // the command line that does it
	does  string
}

// jobs are the purposes that a word may stand for that is no command.
var jobs = []job{
	{
		words: "restore undo rewind rollback revert checkout reset branch recover",
		how:   "sessionfs fork SESSION#ENTRY", does: "makes a session that ends at an earlier entry",
	},
	{
		words: "web html site browse browser serve server publish page view-all ui gui",
		how:   "sessionfs export --all DIR", does: "writes pages of all sessions for a browser",
	},
	{
		words: "daily weekly monthly usage cost costs spent spend tokens billing bill budget price prices today report",
		how:   "sessionfs stats --by day", does: "tells what sessions cost (also week, month, model, cwd)",
	},
	{
		words: "history recent last sessions list latest",
		how:   "sessionfs ls recent", does: "lists sessions, the newest first, and 'sessionfs pick' lets you choose one",
	},
	{
		words: "find grep rg query lookup ask discuss where ag",
		how:   "sessionfs search WORD...", does: "finds what was said in any session",
	},
	{
		words: "choose fzf select open",
		how:   "sessionfs pick [WORD...]", does: "lets you choose a session",
	},
	{
		words: "view read print less more transcript display markdown md",
		how:   "sessionfs show [SESSION | WORD...]", does: "shows a session",
	},
	{
		words: "annotate praise who why",
		how:   "sessionfs blame FILE", does: "names the prompt behind each line of a file",
	},
	{
		words: "touch files edits changed changes",
		how:   "sessionfs touched PATH", does: "finds the sessions that read or changed a file",
	},
	{
		words: "mounts ps info mounted",
		how:   "sessionfs status", does: "lists your mounts",
	},
	{
		words: "continue go chat",
		how:   "sessionfs resume SESSION[#ENTRY]", does: "starts the agent with a session",
	},
	{
		words: "backup save archive cron protect retain",
		how:   "sessionfs keep --timer", does: "copies sessions each day before their agent deletes them",
	},
	{
		words: "share pack zip send",
		how:   "sessionfs bundle SESSION > FILE.tar", does: "packs sessions for another machine",
	},
	{
		words: "convert migrate load unbundle unpack",
		how:   "sessionfs import FILE", does: "makes omp sessions of those of other agents, and of bundles",
	},
	{
		words: "compare cmp",
		how:   "sessionfs diff SESSION SESSION", does: "compares two branches or sessions",
	},
	{
		words: "doctor fsck verify validate lint broken problems repair fix",
		how:   "sessionfs check", does: "tells what is broken in the sessions, and what to do about it",
	},
	{
		words: "graph branches tips",
		how:   "sessionfs log SESSION", does: "shows the branches of a session",
	},
	{
		words: "mount start init setup",
		how:   "sessionfs [SOURCE] MOUNTPOINT", does: "mounts the sessions at an empty directory",
	},
	{
		words: "stop quit",
		how:   "sessionfs -u MOUNTPOINT", does: "unmounts",
	},
	{
		words: "sample samples example examples try tour",
		how:   "sessionfs demo DIR", does: "lays out samples to try, and 'sessionfs pick --demo' shows them",
	},
	{
		words: "rename retitle label append new",
		how:   "sessionfs write SESSION/title < LINE", does: "writes to the control files of a session (also labels, append)",
	},
	{
		words: "completions",
		how:   "sessionfs completion bash", does: "prints completions for a shell",
	},
	{
		words: "skills agent agents tools",
		how:   "sessionfs skill --install", does: "teaches your agents to search their own past",
	},
}

// jobHint returns the end of a message, with the command that does the job that a word stands for, "" if none is
// known. The name of an agent stands for going on with a session in it.
func jobHint(word string) string {
	word = strings.ToLower(word)
	if agents.Find(word) != nil {
		word = "continue"
	}
	for _, j := range jobs {
		if slices.Contains(strings.Fields(j.words), word) {
			return fmt.Sprintf("; '%s' %s", j.how, j.does)
		}
	}
	return ""
}

// commandHint returns the end of a message about a word that is no command: the command that it may stand for,
// or commands with similar names, or "".
func commandHint(root *cobra.Command, word string) string {
	hint := jobHint(word)
	if hint != "" {
		return hint
	}
	return didYouMean(root, word)
}
