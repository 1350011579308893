package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed skill/SKILL.md
var skillText string

func skillCommand() *cobra.Command {
	var install, uninstall bool
	cmd := &cobra.Command{
		Use:   "skill [--install | --uninstall]",
		Short: "Teach an agent to search its own past",
		Long: "Print a SKILL.md, by which an agent learns to search the sessions of this user with this program. " +
			"--install puts it into skills/sessionfs/ of the directory of each agent of this user, or of ~/.agents " +
			"where there is no agent, and --uninstall removes it there. A file that is not as this program wrote it " +
			"stays.",
		Example: "  sessionfs skill --install",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !install && !uninstall {
				_, err := fmt.Fprint(cmd.OutOrStdout(), skillText)
				return err
			}
			var failed error
			for _, dir := range skillDirs(os.Getenv) {
				file := filepath.Join(dir, "SKILL.md")
				said, err := "written", error(nil)
				if install {
					err = installSkill(file)
				} else if said, err = "removed", uninstallSkill(file); errors.Is(err, iofs.ErrNotExist) {
					continue
				}
				if err != nil {
					failed = errors.Join(failed, err)
				} else {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", file, said)
				}
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&install, "install", false, "write it where agents look for skills, and say where")
	cmd.Flags().BoolVar(&uninstall, "uninstall", false, "remove it there")
	cmd.MarkFlagsMutuallyExclusive("install", "uninstall")
	return cmd
}

// skillDirs returns the directories of the skill: one in that of each agent that is there, else one
// in ~/.agents.
func skillDirs(getenv func(string) string) (dirs []string) {
	for _, agent := range agentDirs(getenv) {
		dirs = append(dirs, filepath.Join(agent.Source, "skills", "sessionfs"))
	}
	if home := getenv("HOME"); len(dirs) == 0 && home != "" {
		dirs = append(dirs, filepath.Join(home, ".agents", "skills", "sessionfs"))
	}
	return dirs
}

// skillMark is the last line of an installed skill: the hash of the lines before it.
var skillMark = regexp.MustCompile(`(?s)^(.*)<!-- sessionfs ([0-9a-f]{64}) -->\n$`)

func marked(text string) string {
	sum := sha256.Sum256([]byte(text))
	return text + "<!-- sessionfs " + hex.EncodeToString(sum[:]) + " -->\n"
}

// checkOurs returns an error unless a file is a skill as this program, or an earlier version, wrote
// it.
func checkOurs(file string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a link or no file; it stays", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if m := skillMark.FindStringSubmatch(string(text)); m == nil || marked(m[1]) != string(text) {
		return fmt.Errorf("%s was changed, or is another skill of that name; it stays", file)
	}
	return nil
}

// installSkill writes the skill. No link is followed in the two directories that it may make.
func installSkill(file string) error {
	if err := checkOurs(file); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(file)
	skills := filepath.Dir(dir)
	if err := os.MkdirAll(filepath.Dir(skills), 0o700); err != nil {
		return err
	}
	for _, d := range []string{skills, dir} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, iofs.ErrExist) {
			return err
		}
		if info, err := os.Lstat(d); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is a link or no directory; nothing is written", d)
		}
	}
	made, err := os.CreateTemp(dir, "skill")
	if err != nil {
		return err
	}
	defer os.Remove(made.Name())
	_, err = strings.NewReader(marked(skillText)).WriteTo(made)
	if err = errors.Join(err, made.Close()); err != nil {
		return err
	}
	return os.Rename(made.Name(), file)
}

// uninstallSkill removes the skill and its directory.
func uninstallSkill(file string) error {
	if err := checkOurs(file); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(file)) // unless something else is in it
	return nil
}
