package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/transfer"
	"sessionfs/source"
)

// keepOptions are the options of keep.
type keepOptions struct {
	to      string
	timer   bool
	noTimer bool
	imports bool // given up
}

// keepCommand is sessionfs keep.
func keepCommand() *cobra.Command {
	var o keepOptions
	cmd := &cobra.Command{
		Use:   "keep [--to DIR] [--timer | --no-timer]",
		Short: "Copy sessions before their agent deletes them",
		Long: "Copy the session files of agents that delete sessions, and of some that do not, to " +
			"~/.local/share/sessionfs/kept ($XDG_DATA_HOME), if they are new or longer than their copies. " +
			"Commands and mounts show the copy of a session that the agent has deleted. Nothing is removed: a " +
			"file that became shorter, or was written anew, is kept beside its copy, as X.1.jsonl.\n\n" +
			"--timer has systemd do all that each day; elsewhere it prints a line for cron.",
		Example: "  sessionfs keep --timer",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runKeep(cmd.Context(), o, consoleOf(cmd))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "copy them to `DIR`")
	flags.BoolVar(&o.imports, "import", false, "say what does it")
	flags.BoolVar(&o.timer, "timer", false, "have systemd keep them each day")
	flags.BoolVar(&o.noTimer, "no-timer", false, "end that")
	_ = flags.MarkHidden("import") // the flag exists
	exclusive(cmd, "timer", "no-timer")
	exclusive(cmd, "to", "no-timer")
	return cmd
}

// runKeep keeps sessions, or sets or removes the timer that does. It refuses the forms that earlier versions had.
func runKeep(ctx context.Context, o keepOptions, c *console) error {
	switch {
	case o.imports:
		return refuse(exitUsage, "keep: --import is gone; type sessionfs import and the directories of your agents, such as %s",
			agents.All()[0].InHome())
	case mountopts.IsDatabase(o.to):
		return refuse(exitUsage, "keep: --to takes no database any more; "+
			"sessionfs import -s URL puts the sessions of directories there (docs/team.md)")
	case o.noTimer:
		return removeTimer(c.out)
	}
	to := o.to
	if to != "" {
		var err error
		to, err = filepath.Abs(to)
		if err != nil {
			return err
		}
	}
	if o.timer {
		return installTimer(c.out, to)
	}
	return keep(ctx, c, to)
}

// keptHomes returns the directories of the agents of this user that have sessions to keep.
func keptHomes() (homes []mountopts.AgentDir, err error) {
	for _, home := range source.AgentDirs(os.Getenv) {
		agent := agents.Find(home.Name)
		if agent != nil && agent.Keeps && !transfer.HasKept(home.Source) {
			homes = append(homes, home)
		}
	}
	if len(homes) == 0 {
		err = refuse(exitSource, "keep: there are no sessions of an agent that deletes them")
	}
	return homes, err
}

// keep copies the sessions of the agents of this user to a directory, or to their usual place where to is "". An
// agent that fails does not keep the others from being copied.
func keep(ctx context.Context, c *console, to string) error {
	homes, err := keptHomes()
	if err != nil {
		return err
	}
	if to == "" {
		to, err = fs.KeptDir()
		if err != nil {
			return err
		}
	}
	for _, home := range homes {
		for _, path := range fs.RealPaths(to) {
			_, isIn := fs.ShownAs(mountopts.Options{Source: home.Source}, path)
			if isIn {
				return refuse(exitUsage, "keep: %s is among the sessions of %s; choose another directory",
					to, home.Name)
			}
		}
	}
	var failed error
	for _, home := range homes {
		err := keepHome(ctx, c, home, to)
		failed = errors.Join(failed, err)
	}
	return failed
}

// keepHome copies the sessions of one agent, and prints how many. It prints the number also if some failed.
func keepHome(ctx context.Context, c *console, home mountopts.AgentDir, to string) error {
	agent := agents.Find(home.Name)
	from, err := filepath.EvalSymlinks(home.Source)
	var kept transfer.Kept
	if err == nil {
		err = c.withProgress(ctx, func(ctx context.Context) (err error) {
			kept, err = transfer.Keep(ctx, from, agent, to)
			return err
		})
	}
	if kept.Dir != "" {
		printKept(c.out, agent, &kept)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", agent.Name, err)
	}
	return nil
}

// printKept prints the outcome of keeping the sessions of an agent.
func printKept(out io.Writer, agent *agents.Agent, kept *transfer.Kept) {
	megabytes := float64(kept.Bytes) / 1e6
	fmt.Fprintf(out, "%s: %d files are copied (%.1f MB), %d were kept before, in %s\n",
		agent.Name, kept.Copied, megabytes, kept.Unchanged, kept.Dir)
	if kept.Beside > 0 {
		fmt.Fprintf(out, "  %d of them became shorter or were written anew, and are kept beside their copies\n",
			kept.Beside)
	}
	if kept.Soon > 0 {
		fmt.Fprintf(out, "  %s\n", willDelete(agent, kept.Soon, "these"))
	}
}

// lastingSelf returns the path of this program, for others to run later. It refuses, in the name of a command, a
// path in a temporary directory.
func lastingSelf(command string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	for _, temporary := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if fs.IsBelow(self, temporary) {
			return "", refuse(exitUsage, "%s: the program lies in %s, which is cleared: install it elsewhere first",
				command, temporary)
		}
	}
	return self, nil
}

// installTimer has systemd keep sessions each day, or prints a line for cron where there is none.
func installTimer(out io.Writer, to string) error {
	self, err := lastingSelf("keep")
	if err != nil {
		return err
	}
	words := append(envWords(), self, "keep")
	if to != "" {
		words = append(words, "--to", to)
	}
	for _, word := range words {
		if strings.ContainsFunc(word, unicode.IsControl) { // it could begin another line of a unit or a crontab
			return refuse(exitUsage, "keep: no timer can pass on %q: it has control characters", word)
		}
	}
	isSet, err := transfer.SetTimer(words)
	switch {
	case err != nil:
		return err
	case isSet:
		_, err = fmt.Fprintf(out, "systemd keeps sessions each day; 'sessionfs keep --no-timer' ends that\n")
		return err
	}
	for i, word := range words {
		words[i] = strings.ReplaceAll(quoted(word), "%", `\%`) // a line of a crontab ends at a plain %
	}
	_, err = fmt.Fprintf(out, "There is no systemd here. Add this line by crontab -e:\n@daily %s\n",
		strings.Join(words, " "))
	return err
}

// envWords returns the beginning of a command line that sets the variables that name directories, as they are set
// now: systemd and cron lack them. It is empty if none is set.
func envWords() []string {
	names := []string{"XDG_DATA_HOME=", "PI_CODING_AGENT_DIR="}
	for _, agent := range agents.All() {
		names = append(names, agent.Variable("")) // "" if it has none
	}
	var assignments []string
	for _, name := range names {
		dir := os.Getenv(strings.TrimSuffix(name, "="))
		if dir != "" {
			assignments = append(assignments, name+dir)
		}
	}
	if len(assignments) == 0 {
		return nil
	}
	return append([]string{"/usr/bin/env"}, assignments...)
}

// removeTimer ends the timer.
func removeTimer(out io.Writer) error {
	err := transfer.RemoveTimer()
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return refuse(exitFailure, "keep: there is no timer; if a line of crontab -e runs it, remove that")
	case err == nil:
		_, err = fmt.Fprintln(out, "the timer is removed; kept sessions stay")
	}
	return err
}
