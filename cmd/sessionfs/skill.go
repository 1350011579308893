package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/transfer"
	"sessionfs/source"
)

//go:embed skill/SKILL.md
var skillText string

// skillOptions are the options of skill.
type skillOptions struct {
	install   bool
	uninstall bool
}

// skillCommand is sessionfs skill.
func skillCommand() *cobra.Command {
	var o skillOptions
	cmd := &cobra.Command{
		Use:   "skill [--install | --uninstall]",
		Short: "Teach an agent to search its own past",
		Long: "Print a SKILL.md, by which an agent learns to search the sessions of this user with this program. " +
			"--install puts it into skills/sessionfs/ of the directory of each agent of this user, or of ~/.agents " +
			"where there is no agent, and --uninstall removes it there. A file that is not as this program wrote it " +
			"stays.",
		Example: "  sessionfs skill --install",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSkill(o, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&o.install, "install", false, "write it where agents look for skills, and say where")
	cmd.Flags().BoolVar(&o.uninstall, "uninstall", false, "remove it there")
	exclusive(cmd, "install", "uninstall")
	return cmd
}

// runSkill prints the skill, or writes or removes the file of it for each agent. A directory that fails does not
// keep the others from being changed.
func runSkill(o skillOptions, out io.Writer) error {
	if !o.install && !o.uninstall {
		_, err := fmt.Fprint(out, skillText)
		return err
	}
	dirs := skillDirs(os.Getenv)
	if len(dirs) == 0 {
		return refuse(exitFailure, "skill: there is no agent, and HOME is not set")
	}
	var failed error
	for _, dir := range dirs {
		file := filepath.Join(dir, "skills", "sessionfs", "SKILL.md")
		change := "removed"
		var err error
		if o.install {
			change = "written"
			err = agents.InstallSkill(file, skillText)
		} else {
			err = agents.UninstallSkill(file)
		}
		switch {
		case !o.install && errors.Is(err, iofs.ErrNotExist): // it was not there
		case err != nil:
			failed = errors.Join(failed, err)
		default:
			fmt.Fprintf(out, "%s: %s\n", file, change)
		}
	}
	return failed
}

// skillDirs returns the directories with skills: one of each agent that is there, else ~/.agents.
func skillDirs(getenv func(string) string) (dirs []string) {
	for _, agent := range source.AgentDirs(getenv) {
		if !transfer.HasKept(agent.Source) { // else the agent is gone
			dirs = append(dirs, agent.Source)
		}
	}
	home := getenv("HOME")
	if len(dirs) == 0 && home != "" {
		dirs = append(dirs, filepath.Join(home, ".agents"))
	}
	return dirs
}
