package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/transfer"
)

func keepCommand() *cobra.Command {
	var to string
	var timer, noTimer bool
	cmd := &cobra.Command{
		Use:   "keep [--to DIR | --timer | --no-timer]",
		Short: "Copy sessions before their agent deletes them",
		Long: "Copy the session files of agents that delete sessions, and of some that do not, to " +
			"~/.local/share/sessionfs/kept ($XDG_DATA_HOME), as far as they are new or longer than their copies. " +
			"Commands and mounts show the copy of a session that the agent has deleted. Nothing is removed: a session " +
			"that became shorter, or was written anew, is kept beside its copy, as X.1.jsonl.\n\n" +
			"--timer has systemd do that each day; elsewhere it prints a line for cron.",
		Example: "  sessionfs keep\n  sessionfs keep --timer",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case timer:
				return installTimer(cmd.OutOrStdout())
			case noTimer:
				return removeTimer(cmd.OutOrStdout())
			}
			return keep(cmd.Context(), to, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "copy them to `DIR`")
	cmd.Flags().BoolVar(&timer, "timer", false, "have systemd keep them each day")
	cmd.Flags().BoolVar(&noTimer, "no-timer", false, "end that")
	cmd.MarkFlagsMutuallyExclusive("to", "timer", "no-timer")
	return cmd
}

// keep copies the sessions of the agents of this user, to their usual place where to is "".
func keep(ctx context.Context, to string, out io.Writer) (failed error) {
	found := false
	for _, home := range agentDirs(os.Getenv) {
		agent := agents.Find(home.Name)
		if agent == nil || !agent.Keeps {
			continue
		}
		found = true
		dest, err := keptAt(to, agent.Name)
		var from string
		if err == nil {
			from, err = filepath.EvalSymlinks(home.Source)
		}
		var k transfer.Kept
		if err == nil {
			k, err = transfer.Keep(ctx, from, agent.Dirs, dest, agent.Deletes)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", agent.Name, err))
			continue
		}
		fmt.Fprintf(out, "%s: %d files are copied (%.1f MB), %d were kept before, in %s\n",
			agent.Name, k.Copied, float64(k.Bytes)/1e6, k.Unchanged, dest)
		if k.Beside > 0 {
			fmt.Fprintf(out, "  %d of them became shorter or were written anew, and are kept beside their copies\n",
				k.Beside)
		}
		if k.Soon > 0 {
			fmt.Fprintf(out, "  by default %s deletes %d of its session files within a week (its settings are not read)\n",
				agent.Title, k.Soon)
		}
	}
	if !found && failed == nil {
		return refuse(exitSource, "keep: there are no sessions of an agent that deletes them")
	}
	return failed
}

// keptAt returns the directory for the sessions of an agent: below to, or the usual one where to is "".
func keptAt(to, agent string) (string, error) {
	if to == "" {
		return fs.KeptDir(agent)
	}
	return filepath.Abs(filepath.Join(to, agent))
}

// The units of systemd.
const (
	timerName   = "sessionfs-keep.timer"
	serviceName = "sessionfs-keep.service"
	timerUnit   = `[Unit]
Description=Keep the sessions of coding agents

[Timer]
OnCalendar=daily
Persistent=true

[Install]
WantedBy=timers.target
`
	serviceUnit = `[Unit]
Description=Keep the sessions of coding agents

[Service]
Type=oneshot
ExecStart=%s keep
`
)

// unitDir returns the directory of the units of this user.
func unitDir() (string, error) {
	config, err := os.UserConfigDir()
	return filepath.Join(config, "systemd", "user"), err
}

// installTimer has systemd keep sessions each day, or prints a line for cron where there is none.
func installTimer(out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, temporary := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if isBelow(self, temporary) {
			return refuse(exitUsage, "keep: the program lies in %s, which is cleared: install it elsewhere first", temporary)
		}
	}
	if systemctl("show-environment") != nil {
		_, err = fmt.Fprintf(out, "There is no systemd here. Add this line to the output of crontab -e:\n@daily %s keep\n", quoted(self))
		return err
	}
	dir, err := unitDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	escaped := strings.NewReplacer("%", "%%", `\`, `\\`, " ", `\x20`).Replace(self)
	for name, text := range map[string]string{timerName: timerUnit, serviceName: fmt.Sprintf(serviceUnit, escaped)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := systemctl("enable", "--now", timerName); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "systemd keeps sessions each day; 'sessionfs keep --no-timer' ends that\n")
	return err
}

// removeTimer removes the units.
func removeTimer(out io.Writer) error {
	dir, err := unitDir()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, timerName)); errors.Is(err, iofs.ErrNotExist) {
		return refuse(exitFailure, "keep: there is no timer; if a line of crontab -e runs it, remove that")
	}
	failed := systemctl("disable", "--now", timerName)
	for _, name := range []string{timerName, serviceName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	if failed == nil {
		_, failed = fmt.Fprintln(out, "the timer is removed; kept sessions stay")
	}
	return failed
}

// systemctl runs systemctl for this user.
func systemctl(args ...string) error {
	text, err := exec.Command("systemctl", append([]string{"--user"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl --user %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}
