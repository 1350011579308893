//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A block is what a document has between two fences, with what a comment above it says to the test:
//
//	<!-- test: in DIRECTORY -->           a directory in HOME
//	<!-- test: stop after a moment -->    its commands never end by themselves
type block struct {
	line     int    // of the opening fence
	language string // sh: commands; console: commands and their output; sql: statements; others: nothing to run
	dir      string // where its commands are typed, below HOME; empty: where the block before it ended
	endless  bool
	text     []string
}

// A step is one command of a document, with its output where that is printed.
type step struct {
	file    string
	line    int
	dir     string // as in block
	command string
	endless bool
	shown   bool // output is what the document shows
	output  string
}

// readBlocks finds the fenced blocks of a Markdown text.
func readBlocks(text string) ([]block, error) {
	var blocks []block
	var open *block
	next := block{}
	for i, line := range strings.Split(text, "\n") {
		switch comment, isComment := strings.CutPrefix(line, "<!-- test: "); {
		case open != nil && line == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text = append(open.text, line)
		case strings.HasPrefix(line, "```"):
			started := next
			started.line, started.language = i+1, line[3:]
			open, next = &started, block{}
		case isComment:
			comment, ok := strings.CutSuffix(comment, " -->")
			dir, inDir := strings.CutPrefix(comment, "in ")
			switch {
			case ok && inDir:
				next.dir = dir
			case ok && comment == "stop after a moment":
				next.endless = true
			default:
				return nil, fmt.Errorf("line %d: what is %q?", i+1, line)
			}
		case strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"):
			return nil, fmt.Errorf("line %d: code stands between fences, not indented", i+1)
		case line != "" && (next.dir != "" || next.endless):
			return nil, fmt.Errorf("line %d: a comment to the test stands right above its block", i+1)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block is not closed", open.line)
	}
	return blocks, nil
}

// isCommands reports whether there is something to run.
func (b block) isCommands() bool {
	return b.language == "sh" || b.language == "console" || b.language == "sql"
}

// steps returns the commands of a block. A line that ends in a backslash goes on.
func (b block) steps() []step {
	var steps []step
	if b.language == "sql" {
		return []step{{line: b.line + 1, command: psql + " <<'END'\n" + strings.Join(b.text, "\n") + "\nEND"}}
	}
	dir := b.dir
	goesOn := false
	for i, line := range b.text {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case goesOn:
			last := &steps[len(steps)-1]
			last.command += "\n" + line
		case b.language == "console" && !isCommand:
			last := &steps[len(steps)-1]
			last.output += line + "\n"
			continue
		case line == "":
			continue
		default:
			if b.language == "sh" {
				command = line
			}
			steps = append(steps, step{line: b.line + 1 + i, dir: dir, command: command, endless: b.endless, shown: b.language == "console"})
			dir = ""
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return steps
}

// fresh finds what is new each time: the time now, a new entry's id, a new session's id and name.
var fresh = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{8}\b|` +
	`\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d([.-]\d{3}Z)?`)

// outputMatches says whether got is what the document shows. What is new each time and is not in known, the
// text of the sample store, may differ. The columns of ls depend on the terminal.
func outputMatches(s step, got, known string) bool {
	if strings.HasPrefix(s.command, "ls") && !strings.Contains(s.command, "|") {
		columns := regexp.MustCompile(`\s{2,}|\n`)
		names := func(text string) []string {
			return slices.DeleteFunc(columns.Split(text, -1), func(name string) bool { return name == "" })
		}
		want, have := names(s.output), names(got)
		slices.Sort(want)
		slices.Sort(have)
		return slices.Equal(want, have)
	}
	var pattern strings.Builder
	rest := strings.TrimRight(s.output, "\n")
	for rest != "" {
		at := fresh.FindStringIndex(rest)
		if at == nil {
			break
		}
		pattern.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		if found := rest[at[0]:at[1]]; strings.Contains(known, found) {
			pattern.WriteString(regexp.QuoteMeta(found))
		} else {
			pattern.WriteString(`(` + fresh.String() + `)`)
		}
		rest = rest[at[1]:]
	}
	pattern.WriteString(regexp.QuoteMeta(rest))
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(strings.TrimRight(got, "\n"))
}

// withOutputs returns a document with the output that its commands have now, where that is not what it shows.
func withOutputs(text string, steps []step, results []result) string {
	lines := strings.Split(text, "\n")
	for i := len(steps) - 1; i >= 0; i-- { // from the end, as lines move
		s, got := steps[i], strings.TrimRight(results[i].stdout, "\n")
		if !s.shown || outputMatches(s, got, sampleText()) {
			continue
		}
		first := s.line + strings.Count(s.command, "\n") // the line below the command, counted from 0
		var now []string
		if got != "" {
			now = strings.Split(got, "\n")
		}
		lines = slices.Replace(lines, first, first+strings.Count(s.output, "\n"), now...)
	}
	return strings.Join(lines, "\n")
}

func TestWithOutputs(t *testing.T) {
	text := "```console\n$ a \\\n  b\nold\nolder\n$ c\n$ d\nsame\n```\nend"
	blocks, err := readBlocks(text)
	require.NoError(t, err)
	got := withOutputs(text, blocks[0].steps(), []result{{stdout: "new\n"}, {stdout: "1\n2\n"}, {stdout: "same\n"}})
	require.Equal(t, "```console\n$ a \\\n  b\nnew\n$ c\n1\n2\n$ d\nsame\n```\nend", got)
}
