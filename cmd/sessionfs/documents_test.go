//go:build linux

package main

import (
	"errors"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"sessionfs/mountopts"
)

// typed are the documents whose commands tests type.
var typed = []string{"README.md", "docs/cookbook.md", "docs/sessionfs.1.md", "docs/team.md", "docs/troubleshooting.md"}

// notRun are the blocks that no test types, by document and first line, and why.
var notRun = map[string]map[string]string{
	"README.md": {
		"scripts/quickstart": "it installs what is missing; scripts/test runs it, and scripts/bareroot where all is missing",
		"scripts/test":       "it runs this test",
		"scripts/package":    "it installs a package on this machine; scripts/bareroot does so in a root directory of its own",
	},
	"CONTRIBUTING.md": {
		"go build -o bin/sessionfs ./cmd/sessionfs": "it needs a clone to write to; scripts/quickstart does the same",
		"go vet ./...":                     "they run this test",
		"scripts/bench f":                  "it takes hours",
		"module=example.org/you/sessionfs": "TestModulePath in docs types it in a copy",
		"scripts/package 1.2.3":            "it takes minutes; the second line does the first",
	},
	"docs/team.md": {
		`sessionfs bundle -o blobs=postgres -s 'postgres://me@db.example/team' 'by-id/*' > team.tar   # the old version`: "it needs an earlier version",
	},
	"docs/sessionfs.1.md":     {"systemctl --user enable --now sessionfs": "it changes what the user's machine starts; TestUnit has the unit"},
	"docs/cookbook.md":        {"sessionfs demo ~/try-sessions": "the test's home is made by it", "sessionfs resume --in codex 7b0e2a54": "it starts an agent", "tail -f \"$A/by-id/019d3d9/transcript.md\"": "it never ends; the page follow has it"},
	"docs/troubleshooting.md": {"journalctl -t sessionfs": "a machine may have no journal"},
}

// readDocument returns the blocks of a document.
func readDocument(t *testing.T, name, text string) []block {
	t.Helper()
	blocks, err := readBlocks(text)
	require.NoError(t, err, name)
	for _, b := range blocks {
		require.Contains(t, []string{"sh", "console", "sql", "text", "json", "go"}, b.language, "%s line %d", name, b.line)
		require.NotEmpty(t, b.text, "%s line %d", name, b.line)
	}
	return blocks
}

// documents returns the names of the documents of the project.
func documents(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found := glob(t, filepath.Join(projectRoot, pattern))
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

// manual is docs/sessionfs.1.md by its headings: the bold words of the terms that are defined below each.
type manual struct {
	headings []string
	terms    map[string][]string
}

var boldWord = regexp.MustCompile(`\*\*([^*]+)\*\*`)

// readManual reads the manual.
func readManual(t *testing.T) manual {
	t.Helper()
	text := readProject(t, "docs/sessionfs.1.md")
	m := manual{terms: map[string][]string{}}
	lines := strings.Split(text, "\n")
	for i, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, "#") {
			m.headings = append(m.headings, strings.TrimLeft(line, "# "))
		}
		if strings.HasPrefix(lines[i+1], ":") {
			at := m.headings[len(m.headings)-1]
			for _, word := range boldWord.FindAllStringSubmatch(line, -1) {
				m.terms[at] = append(m.terms[at], strings.ReplaceAll(word[1], `\`, ""))
			}
		}
	}
	return m
}

// readProject reads a file of the project.
func readProject(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if errors.Is(err, iofs.ErrPermission) {
		t.Skip("run as a user who cannot read the source: ", err)
	}
	require.NoError(t, err)
	return string(text)
}

// flagsOf returns the flags of a set as they are typed, without what is not for people.
func flagsOf(set *pflag.FlagSet, except *pflag.FlagSet) (names []string) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || except != nil && except.Lookup(f.Name) != nil {
			return
		}
		if f.Shorthand != "" {
			names = append(names, "-"+f.Shorthand)
		}
		names = append(names, "--"+f.Name)
	})
	return names
}

// TestManualIsComplete: the manual has the commands and the flags that the program has, all of them and no others.
// TestOptionTable has the options of -o.
func TestManualIsComplete(t *testing.T) {
	m := readManual(t)
	require.ElementsMatch(t, flagsOf(mountopts.Flags(), nil), m.terms["OPTIONS"])
	root := newRoot(streams{}, "")
	cat, _, err := root.Find([]string{"cat"}) // which has only the flags that all commands on SOURCE have
	require.NoError(t, err)
	cat.InitDefaultHelpFlag()
	common := cat.Flags()
	require.ElementsMatch(t, flagsOf(common, nil), m.terms["COMMANDS"])
	var commands []string
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		i := slices.IndexFunc(m.headings, func(heading string) bool {
			return strings.HasPrefix(heading+" ", "sessionfs "+c.Name()+" ")
		})
		require.GreaterOrEqual(t, i, 0, c.Name())
		heading := m.headings[i]
		commands = append(commands, heading)
		require.ElementsMatch(t, flagsOf(c.Flags(), common), m.terms[heading], c.Name())
	}
	said := slices.DeleteFunc(m.headings, func(h string) bool { return !strings.HasPrefix(h, "sessionfs ") })
	require.ElementsMatch(t, commands, said)
}

// TestManualFstab: its line of /etc/fstab is one that mount(8) would have the program mount by.
func TestManualFstab(t *testing.T) {
	_, rest, _ := strings.Cut(readProject(t, "docs/sessionfs.1.md"), "\n# FSTAB\n")
	blocks := readDocument(t, "docs/sessionfs.1.md", rest)
	require.Equal(t, "text", blocks[0].language)
	require.Len(t, blocks[0].text, 1)
	f := strings.Fields(blocks[0].text[0])
	require.Len(t, f, 6)
	require.Equal(t, mountopts.FSType, f[2])
	_, err := mountopts.Parse([]string{"mount.fuse.sessionfs", f[0], f[1], "-o", f[3]})
	require.NoError(t, err)
}

// TestManualPage: the page that is made of it is one that groff finds nothing wrong with, as man runs it: for UTF-8, and for tables.
func TestManualPage(t *testing.T) {
	if testing.Short() {
		t.Skip("the Go tool chain, which makes the page, may be another user's")
	}
	page, err := exec.Command("../../scripts/man").Output()
	require.NoError(t, err)
	require.Contains(t, string(page), ".SH NAME\n")
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip(err)
	}
	render := func(page string) (text, warnings string) {
		file := filepath.Join(t.TempDir(), "sessionfs.1")
		require.NoError(t, os.WriteFile(file, []byte(page), 0o600))
		cmd := exec.Command("groff", "-k", "-t", "-man", "-Tutf8", "-ww", "-P-c", file)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out), said.String()
	}
	text, warnings := render(string(page))
	require.Empty(t, warnings)
	for _, want := range []string{"sessionfs - show", "--demo", "-o OPTIONS, --options OPTIONS", "auto_unmount"} {
		require.Contains(t, regexp.MustCompile(".\x08|\x1b\\[[0-9;]*m").ReplaceAllString(text, ""), want)
	}
	_, warnings = render(string(page) + ".nosuchrequest\n")
	require.NotEmpty(t, warnings)
}
