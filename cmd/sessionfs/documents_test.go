//go:build linux

package main

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"sessionfs/mountopts"
)

// typed are the documents whose commands tests type.
var typed = []string{"README.md", "docs/cookbook.md", "docs/sessionfs.1.md", "docs/team.md", "docs/troubleshooting.md"}

// notRun are the blocks that no test types, by document and first line, and why. What can be known of their commands
// without running them is checked: options, and paths of the project.
var notRun = map[string]map[string]string{
	"README.md": {
		"scripts/quickstart": "it installs what is missing; scripts/test runs it, and scripts/bareroot where all is missing",
		"scripts/test":       "it runs this test",
		"scripts/package":    "it installs a package on this machine; scripts/bareroot does so in a root directory of its own",
	},
	"CONTRIBUTING.md": {
		"go build -o bin/sessionfs ./cmd/sessionfs": "it needs a clone to write to; scripts/quickstart does the same",
		"go vet ./...":          "they run this test",
		"scripts/bench f":       "it takes hours",
		"scripts/package 1.2.3": "it takes minutes; the second line does the first",
	},
	"docs/sessionfs.1.md":     {"systemctl --user enable --now sessionfs": "it changes what the user's machine starts; TestUnit has the unit"},
	"docs/troubleshooting.md": {"journalctl -t sessionfs": "a machine may have no journal"},
}

// readDocument returns the blocks of a document.
func readDocument(t *testing.T, name, text string) []block {
	t.Helper()
	blocks, err := readBlocks(text)
	require.NoError(t, err, name)
	for _, b := range blocks {
		require.Contains(t, []string{"sh", "console", "sql", "text", "json"}, b.language, "%s line %d", name, b.line)
		require.NotEmpty(t, b.text, "%s line %d", name, b.line)
	}
	return blocks
}

// documents returns the names of the documents of the project.
func documents(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(projectRoot, pattern))
		require.NoError(t, err)
		for _, name := range found {
			names = append(names, strings.TrimPrefix(name, projectRoot+"/"))
		}
	}
	return names
}

const projectRoot = "../.."

// TestEveryCommandOfDocuments: a test types it, or notRun says why none does.
func TestEveryCommandOfDocuments(t *testing.T) {
	names := documents(t)
	for _, name := range typed {
		require.Contains(t, names, name)
	}
	excused := 0
	for _, name := range names {
		for _, b := range readDocument(t, name, readProject(t, name)) {
			reason, ok := notRun[name][b.text[0]]
			switch {
			case !b.isCommands():
			case ok:
				excused++
				require.NotEmpty(t, reason, "%s line %d", name, b.line)
				for _, s := range b.steps() {
					require.NoError(t, checkCommands(s.command), "%s line %d: %s", name, s.line, s.command)
				}
			default:
				require.Contains(t, typed, name, "line %d: commands that no test types, and no reason why", b.line)
			}
		}
	}
	for _, blocks := range notRun {
		excused -= len(blocks)
	}
	require.Zero(t, excused, "notRun has what no document has")
}

var (
	// inText is a command in the running text, as documents and the manual page set it.
	inText = regexp.MustCompile("`((?:[A-Z]+=\\S+ )*sessionfs [^`]+|-o [^`]+)`|\\*\\*(sessionfs [^*]+)\\*\\*")
	// template is a command with what one would not type.
	template = regexp.MustCompile(`[][…|]`)
)

// sampleValue puts values in the places of words that stand for some.
var sampleValue = strings.NewReplacer("memory= ", "memory=64m", "blobs= ", "blobs=/b", "=SIZE ", "=64m", "=TIME ", "=10m", " ", "")

// TestCommandsInText: the program has the commands and the options that the text of the documents names.
func TestCommandsInText(t *testing.T) {
	checked := 0
	for _, name := range documents(t) {
		for _, m := range inText.FindAllStringSubmatch(readProject(t, name), -1) {
			command := strings.ReplaceAll(m[1]+m[2], `\`, "")
			if template.MatchString(command) {
				continue
			}
			checked++
			if options, ok := strings.CutPrefix(command, "-o "); ok {
				_, err := mountopts.ParseOptions([]string{sampleValue.Replace(options + " ")})
				require.NoError(t, err, "%s: %s", name, m[0])
				continue
			}
			err := checkCommands(command)
			for range 2 { // the text may leave out what is the same in every line
				if err != nil {
					command += " DIRECTORY"
					err = checkCommands(command)
				}
			}
			require.NoError(t, err, "%s: %s", name, m[0])
		}
	}
	require.Greater(t, checked, 50)
}

// checkCommands returns what is wrong with the commands of a line, as far as that can be known without running them: scripts of
// the project, and all that sessionfs parses.
func checkCommands(line string) error {
	for _, words := range shellWords(line) {
		for len(words) > 1 && (words[0] == "sudo" || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
		if path.Base(words[0]) == "sessionfs" {
			if err := parses(words); err != nil {
				return err
			}
		} else if strings.HasPrefix(words[0], "scripts/") {
			if _, err := os.Stat(filepath.Join(projectRoot, words[0])); err != nil {
				return err
			}
		}
	}
	return nil
}

// parses returns what the program would say to the words of a command line.
func parses(words []string) error {
	root := newRoot(streams{})
	if !isCommand(root, words) {
		_, err := mountopts.Parse(words)
		return err
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	if words[1] == "help" {
		words = words[1:]
	}
	cmd, rest, err := root.Find(words[1:])
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if lists, err := cmd.Flags().GetStringArray("options"); err == nil {
		if _, err := mountopts.ParseOptions(lists); err != nil {
			return err
		}
	}
	return nil
}

// shellWords splits a line of a shell into commands and their words. In quotes there are words too, but no commands.
func shellWords(line string) (commands [][]string) {
	quoted := regexp.MustCompile(`"[^"]*"|'[^']*'`)
	line = quoted.ReplaceAllStringFunc(line, func(text string) string { return regexp.MustCompile(`\W`).ReplaceAllString(text, "_") })
	for _, command := range regexp.MustCompile("[|;&()<>]").Split(line, -1) {
		if words := strings.Fields(strings.ReplaceAll(command, "\\\n", " ")); len(words) > 0 {
			commands = append(commands, words)
		}
	}
	return commands
}
