package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/agents"
	"sessionfs/source"
)

// demoOptions are the options of demo.
type demoOptions struct {
	dir string
}

// demoCommand is sessionfs demo.
func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo DIR",
		Short: "Lay out the sample store in a directory, as a home for the cookbook's commands",
		Long: "Write the built-in sample store into DIR, as a home directory with the directories of its agents and " +
			"their project, and print the command that starts a shell there. In that shell the commands of the " +
			"cookbook can be typed as they are written; nothing of your own home is read or changed. DIR must not " +
			"exist, or be empty. To remove it all, remove DIR.",
		Example: "  sessionfs demo ~/try-sessions",
		Args:    oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDemo(demoOptions{dir: args[0]}, cmd.OutOrStdout())
		},
	}
}

// runDemo lays out the sample store, and prints the command that starts a shell there.
func runDemo(o demoOptions, out io.Writer) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	err = source.LayOut(dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The sample store is in %s. To try commands on it, type:\n  %s\n",
		dir, shellIn(dir, os.Getenv))
	return err
}

// shellIn returns the command line that starts a shell with a directory as its home. It unsets the variables of
// the environment that name the directories of agents elsewhere; getenv has their values.
func shellIn(dir string, getenv func(string) string) string {
	words := []string{"env"}
	for _, name := range homeVariables() {
		if getenv(name) != "" {
			words = append(words, "-u", name)
		}
	}
	return strings.Join(append(words, "HOME="+quoted(dir), "sh"), " ")
}

// homeVariables returns the variables that name directories of agents.
func homeVariables() []string {
	list := []string{"XDG_DATA_HOME", "XDG_STATE_HOME", "PI_CODING_AGENT_DIR"}
	for _, agent := range agents.All() {
		name := strings.TrimSuffix(agent.Variable(""), "=")
		if name != "" {
			list = append(list, name)
		}
	}
	return list
}
