package main

import (
	"bytes"
	"context"
	"io"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/names"
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
	begins := func(c *cobra.Command) bool { return c.IsAvailableCommand() && strings.HasPrefix(c.Name(), typed) }
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

// complete offers what an argument may go on with: paths of the tree, ids of sessions where the command takes those, and files
// of the machine where neither begins so. An error offers nothing.
func (f *sourceFlags) complete(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if strings.IndexAny(typed, "/.~") == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	cmd.SetErr(io.Discard)
	src, closeSource, err := f.open(cmd, append(args, typed))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer closeSource()
	ctx, cancel := context.WithTimeout(context.Background(), completeLimit)
	defer cancel()
	src.FS, src.ctx = src.With(ctx), ctx
	offers, directive := src.completePath(typed)
	if f.ids && !strings.Contains(typed, "/") {
		offers = append(offers, src.completeIDs(typed)...)
	}
	if len(offers) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return offers, directive | cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completePath offers the paths of the tree that begin with what has been typed; where lines are to be written, those that
// take lines, and what leads to them.
func (src *source) completePath(typed string) (offers []cobra.Completion, directive cobra.ShellCompDirective) {
	dir, begun := "", typed
	if at := strings.LastIndexByte(typed, '/'); at >= 0 {
		dir, begun = typed[:at+1], typed[at+1:]
	}
	paths, err := src.expand(dir)
	if err != nil {
		return nil, directive
	}
	items, err := src.ReadDir(paths[0])
	if err != nil {
		return nil, directive
	}
	inSession := slices.ContainsFunc(items, func(it iofs.DirEntry) bool { return it.Name() == leafLink })
	for _, it := range items {
		name := it.Name()
		if !strings.HasPrefix(name, begun) || name[0] == '.' && begun == "" || len(offers) == maxCompletions {
			continue
		}
		isDir := it.IsDir()
		if it.Type() == iofs.ModeSymlink {
			info, err := src.Stat(path.Join(paths[0], name))
			isDir = err == nil && info.IsDir()
		}
		if src.flags.writes && !slices.Contains(writable, name) && (inSession || !isDir) {
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

// completeIDs offers the ids of the sessions that begin with what has been typed, those modified last first, with their titles.
func (src *source) completeIDs(typed string) (offers []cobra.Completion) {
	all, err := src.Sessions(src.ctx)
	if err != nil {
		return nil
	}
	behind := ""
	if src.flags.writes {
		behind = "/"
	}
	for _, i := range all {
		if len(offers) == maxCompletions {
			break
		}
		if id := names.FileName(i.ID); strings.HasPrefix(id, typed) {
			offers = append(offers, cobra.CompletionWithDesc(id+behind, visible(i.DisplayName())))
		}
	}
	return offers
}

// shells are those that have completions, and what makes them.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// completionCommand is sessionfs completion.
func completionCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the completions for a shell",
		Long: "Print the completions for a shell: of commands, options, paths, and ids of sessions. Packages have them already. " +
			"Each time a shell starts:\n" +
			"  bash        source <(sessionfs completion bash), behind bash-completion\n" +
			"  zsh         source <(sessionfs completion zsh), behind compinit\n" +
			"  fish        sessionfs completion fish | source\n" +
			"  powershell  sessionfs completion powershell | Out-String | Invoke-Expression",
		Example:   "  sessionfs completion fish > ~/.config/fish/completions/sessionfs.fish",
		Args:      cobra.ExactArgs(1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				var script bytes.Buffer
				if err := root.GenFishCompletion(&script, true); err != nil {
					return err
				}
				_, err := io.WriteString(out, fishWords.Replace(script.String()))
				return err
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return refuse(exitFailure, "completion: no completions for %q; there are some for %s", args[0], strings.Join(shells, ", "))
		},
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
