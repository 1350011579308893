//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
