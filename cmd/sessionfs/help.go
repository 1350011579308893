package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/postgres"
)

// helpOptions are the options of help.
type helpOptions struct {
	root  *cobra.Command // of all commands
	topic []string       // a word, or none
}

// helpCommand is sessionfs help, about the commands that root has.
func helpCommand(root *cobra.Command) *cobra.Command {
	var topics []cobra.Completion
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			topics = append(topics, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	o := helpOptions{root: root}
	return &cobra.Command{
		Use:       "help [COMMAND]",
		Short:     "Tell about a command, or with 'mount' all options of a mount",
		Example:   "  sessionfs help search",
		Args:      atMostOneArg,
		ValidArgs: append(topics, cobra.CompletionWithDesc("mount", "all options of a mount")),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.topic = args
			return runHelp(o, cmd.OutOrStdout())
		},
	}
}

// runHelp prints the help of a mount or a command, or the summary.
func runHelp(o helpOptions, out io.Writer) error {
	if len(o.topic) == 0 {
		_, err := io.WriteString(out, summary())
		return err
	}
	topic := o.topic[0]
	if topic == "mount" {
		_, err := io.WriteString(out, usage())
		return err
	}
	about, _, err := o.root.Find(o.topic)
	if err != nil || about == o.root {
		return refuse(exitFailure, "there is no command %q%s ('sessionfs help' lists all)", topic, commandHint(o.root, topic))
	}
	return about.Help()
}

// versionCommand is sessionfs version.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Example:           "  sessionfs version",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runVersion(cmd.OutOrStdout())
		},
	}
}

// runVersion prints the version.
func runVersion(out io.Writer) error {
	_, err := fmt.Fprintln(out, "sessionfs", version())
	return err
}

// printHelp prints the help of a command, which fits a terminal of 24 lines.
func printHelp(c *cobra.Command, _ []string) {
	out := c.OutOrStdout()
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(out, "Usage: %s\n\n%s", c.UseLine(), mountopts.Wrap(text))
	if c.Example != "" {
		fmt.Fprintf(out, "\nExample:\n%s\n", c.Example)
	}
	options := optionsHelp(c.LocalFlags())
	if options != "" {
		fmt.Fprintf(out, "\nOptions:\n%s", options)
	}
}

// optionsHelp returns the help of a command's options, with one line for those that all commands on SOURCE have.
func optionsHelp(flags *pflag.FlagSet) string {
	isOnSource := flags.Lookup("source") != nil
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		isCommon := isOnSource && slices.Contains(sourceFlagNames, f.Name)
		if !isCommon && f.Name != "help" {
			own.AddFlag(f)
		}
	})
	text := own.FlagUsagesWrapped(mountopts.HelpWidth)
	if isOnSource {
		text += commonHelp
	}
	return text
}

// commonHelp is the help of the options that all commands on SOURCE have.
const commonHelp = "  -s DIR, -o OPTIONS, --demo, --debug   as for all commands ('man sessionfs')\n"

// summary is the help that fits a screen.
func summary() string { return mountopts.Summary(agents.Titles()) }

// usage is the help of a mount.
func usage() string {
	var homes []string
	for _, a := range agents.All() {
		homes = append(homes, a.Title+"'s is "+strings.Join(a.Homes, " or "))
	}
	return mountopts.Usage(strings.Join(homes, ", ")) + exitHelp
}

// didYouMean returns the end of a message with the commands that somebody may have meant by a word that is none,
// "" if no name is like it. It sets the distance of suggestions in root.
func didYouMean(root *cobra.Command, word string) string {
	root.SuggestionsMinimumDistance = 1 // letters that differ
	if len(word) > 4 {                  // two of four would fit most short names
		root.SuggestionsMinimumDistance = 2
	}
	meant := root.SuggestionsFor(word)
	if len(meant) == 0 || word == "" {
		return ""
	}
	return "; did you mean " + strings.Join(meant, " or ") + "?"
}

// mistyped refuses a command line that begins with a word, without a slash, that is neither a command
// nor an existing path. It returns nil for others.
func mistyped(args []string) error {
	word := args[1]
	_, err := os.Lstat(word)
	if !errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	c, err := mountopts.Parse(args)
	hint := commandHint(newRoot(streams{}, ""), word)
	switch {
	case c.Unmount: // which has a message of its own
		return nil
	case err != nil || hint != "":
		return refuse(exitUsage, "there is no command %s (see 'sessionfs --help'), nor a directory of that name%s",
			word, hint)
	case c.Options.Mountpoint != word:
		return refuse(exitSource, "there is no command %s (see 'sessionfs --help'), and SOURCE %[1]s does not exist",
			word)
	}
	return refuse(exitMountpoint, "there is no command %s (see 'sessionfs --help'), "+
		"and MOUNTPOINT %[1]s does not exist; "+
		"to mount there, create it: mkdir %s", word, quoted(word))
}

const (
	// completeLimit is how long a shell waits for a completion at most.
	completeLimit = 2 * time.Second
	// maxCompletions is how many names are offered.
	maxCompletions = 500
)

// completeMount completes a command line that mounts. cobra adds the names of commands; a shell
// that looks for directories drops those.
func completeMount(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if cmd.Flags().Changed("unmount") { // a shell that looks for directories would wait for a mount that hangs
		return ourMountpoints(), cobra.ShellCompDirectiveNoFileComp
	}
	begins := func(c *cobra.Command) bool {
		return c.IsAvailableCommand() && strings.HasPrefix(c.Name(), typed)
	}
	if len(args) == 0 && slices.ContainsFunc(cmd.Commands(), begins) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeOptions offers the options of -o that have an effect, behind those that have been typed.
func completeOptions(_ *cobra.Command, _ []string, typed string) (offers []cobra.Completion, _ cobra.ShellCompDirective) {
	before, begun := cutAfterLast(typed, ',')
	for _, word := range mountopts.OptionWords() {
		if strings.HasPrefix(word, begun) {
			offers = append(offers, before+word)
		}
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// cutAfterLast cuts a text behind the last separator. Without one, before is "".
func cutAfterLast(text string, separator byte) (before, after string) {
	end := strings.LastIndexByte(text, separator) + 1
	return text[:end], text[end:]
}

// complete completes an argument by paths of the tree, by ids of sessions where the command takes
// those, and by files of the machine if there are neither. An error offers nothing.
func (f *sourceFlags) complete(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	isFile := strings.IndexAny(typed, "/.~") == 0 // no path of the tree begins so
	if isFile {
		return nil, cobra.ShellCompDirectiveDefault
	}
	cmd.SetErr(io.Discard) // a warning would stand in the line that is typed
	src, err := f.open(cmd, append(args, typed))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer src.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completeLimit)
	defer cancel()
	src.Use(ctx)
	offers, directive := src.completePath(typed)
	if f.ids && !strings.Contains(typed, "/") {
		offers = append(offers, src.completeIDs(typed)...)
	}
	if len(offers) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return offers, directive | cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completePath offers the paths of the tree that begin with the typed text. For write it offers
// control files alone, and the directories that lead to them.
func (src *sourceTree) completePath(typed string) (offers []cobra.Completion, directive cobra.ShellCompDirective) {
	dir, begun := cutAfterLast(typed, '/')
	paths, err := src.Expand(dir)
	if err != nil {
		return nil, directive
	}
	items, err := src.ReadDir(paths[0])
	if err != nil {
		return nil, directive
	}
	inSession := slices.ContainsFunc(items, func(it iofs.DirEntry) bool {
		return it.Name() == leafLink
	})
	for _, it := range items {
		if len(offers) == maxCompletions {
			break
		}
		name := it.Name()
		isHidden := name[0] == '.' && begun == ""
		if isHidden || !strings.HasPrefix(name, begun) {
			continue
		}
		isDir := it.IsDir()
		if it.Type() == iofs.ModeSymlink {
			info, err := src.Stat(path.Join(paths[0], name))
			isDir = err == nil && info.IsDir()
		}
		isWay := isDir && !inSession // to files that take lines
		if src.flags.writes && !isWay && !slices.Contains(writable, name) {
			continue
		}
		if isDir { // the path goes on
			name += "/"
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		offers = append(offers, dir+name)
	}
	return offers, directive
}

// completeIDs offers the ids that begin with the typed text, with their titles, sessions modified
// last first. An error offers nothing.
func (src *sourceTree) completeIDs(typed string) (offers []cobra.Completion) {
	all, err := src.Sessions(src.Context())
	if err != nil {
		return nil
	}
	end := ""
	if src.flags.writes { // a control file of the session follows
		end = "/"
	}
	for _, info := range all {
		if len(offers) == maxCompletions {
			break
		}
		id := names.FileName(info.ID)
		if strings.HasPrefix(id, typed) {
			title := names.Visible(info.DisplayName())
			offers = append(offers, cobra.CompletionWithDesc(id+end, title))
		}
	}
	return offers
}

// addCompletions adds cobra's command completion to root, with other completions for fish.
func addCompletions(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"}) // just added
	completion.Use = "completion bash|zsh|fish|powershell"
	completion.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("there are completions for bash, zsh, fish and powershell, not for %q", args[0])
	}
	for _, shell := range completion.Commands() {
		shell.Args = noArgs
	}
	completion.RunE = func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}
	completion.Example = "  mkdir -p ~/.config/fish/completions\n" +
		"  sessionfs completion fish > ~/.config/fish/completions/sessionfs.fish"
	fish, _, _ := completion.Find([]string{"fish"}) // cobra has added it
	fish.RunE = func(cmd *cobra.Command, _ []string) error {
		return runFishCompletion(root, cmd.OutOrStdout())
	}
}

// runFishCompletion prints the completions of fish.
func runFishCompletion(root *cobra.Command, out io.Writer) error {
	var script bytes.Buffer
	err := root.GenFishCompletion(&script, true)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, fishWords.Replace(script.String()))
	return err
}

// fishWords makes the completions of fish pass on the words that are typed as the shell would:
// cobra escapes the last one once more, so that nothing completes a name with a space, and splits
// those before it at spaces. A command substitution among them, which cobra runs, is not run.
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

// goTo defines the function s of a shell: s goes to the last session of the working directory, or
// of one above it, and s QUERY to a session that the user chooses. %s is this program.
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

// shellInitOptions are the options of shell-init.
type shellInitOptions struct {
	shell string
}

// posixShells are the shells that read the function of sh.
var posixShells = []string{"bash", "zsh", "dash", "sh", "ksh"}

// shellInitCommand is sessionfs shell-init.
func shellInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shell-init bash|zsh|fish|dash|sh",
		Short: "Print the function s for a shell, which goes to a session",
		Long: "Print the function s for a shell. In a mount, s goes to the directory of the last session of the " +
			"working directory, or of the nearest directory above that has one; s QUERY goes to one that is chosen, " +
			"as by sessionfs pick.\n\n" +
			"Each time a shell starts:\n  bash, zsh, dash  eval \"$(sessionfs shell-init sh)\"\n  fish             " +
			"sessionfs shell-init fish | source",
		Example:   "  eval \"$(sessionfs shell-init bash)\"",
		Args:      oneArg,
		ValidArgs: append(slices.Clone(posixShells), "fish"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runShellInit(shellInitOptions{shell: args[0]}, cmd.OutOrStdout())
		},
	}
}

// runShellInit prints the function s for a shell.
func runShellInit(o shellInitOptions, out io.Writer) error {
	shell := o.shell
	if slices.Contains(posixShells, shell) {
		shell = "sh"
	}
	text, ok := goTo[shell]
	if !ok {
		return refuse(exitFailure, "shell-init: nothing for %q; there is something for %s, fish",
			shell, strings.Join(posixShells, ", "))
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, text, quoted(self))
	return err
}

// sqlTriggerOptions are the options of sql-trigger.
type sqlTriggerOptions struct {
	source string
}

// sqlTriggerCommand is sessionfs sql-trigger.
func sqlTriggerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sql-trigger [SOURCE]",
		Short: "Print a trigger by which mounts of a database see changes at once",
		Long: "Print a trigger for the table of SOURCE, postgres://USER@HOST/DATABASE?table=TABLE, which notes what " +
			"changed, so that mounts need not read through all of it. No database is asked: run the output with psql " +
			"as the table's owner.",
		Example:           "  sessionfs sql-trigger postgres://db.example/team | psql -h db.example team",
		Args:              atMostOneArg,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := sqlTriggerOptions{source: "postgres:///"} // its table has the default name
			if len(args) > 0 {
				o.source = args[0]
			}
			return runSQLTrigger(o, cmd.OutOrStdout())
		},
	}
}

// runSQLTrigger prints the trigger for a table.
func runSQLTrigger(o sqlTriggerOptions, out io.Writer) error {
	if !mountopts.IsDatabase(o.source) {
		return refuse(exitUsage, "sql-trigger: SOURCE is not the URL of a database: "+
			"postgres://user@host/database?table=TABLE")
	}
	mount := mountopts.Options{Source: o.source}
	err := mount.CheckSource()
	if err != nil {
		return refuse(exitUsage, "sql-trigger: %s", err)
	}
	src, err := postgres.ParseSource(mount.Source)
	if err != nil {
		return refuse(exitUsage, "sql-trigger: %s", err)
	}
	_, err = fmt.Fprint(out, src.Trigger())
	return err
}
