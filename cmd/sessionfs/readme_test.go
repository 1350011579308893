//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/testdata"
)

const (
	// readmePatience is how long a shell may take for all commands of a document.
	readmePatience = 4 * time.Minute
	// shownHome is what documents show instead of the home directory of the test.
	shownHome = "/home/dev"
	// statusMark starts the line that tells a command's status.
	statusMark = "@@status "
)

// updateEnv makes the tests write what commands print in bash into the documents, where it differs.
const updateEnv = "SESSIONFS_UPDATE_DOCS"

// TestReadme: the commands of the documents for users work as they are typed: in each shell, one after the other, in a home directory
// with the sample store as the agent directory. What a document shows of their output is what they print.
func TestReadme(t *testing.T) { typeDocument(t, "README.md", 6, allShells()) }

// TestCookbook is TestReadme for the cookbook.
func TestCookbook(t *testing.T) { typeDocument(t, "docs/cookbook.md", 60, allShells()) }

// TestTroubleshooting is TestReadme for the page about troubles, in bash alone.
func TestTroubleshooting(t *testing.T) {
	typeDocument(t, "docs/troubleshooting.md", 10, allShells()[:1])
}

// TestManual is TestReadme for the manual, in bash alone.
func TestManual(t *testing.T) { typeDocument(t, "docs/sessionfs.1.md", 5, allShells()[:1]) }

// allShells returns how shells are run, as a terminal runs them: zsh takes no comments there. fish has no such difference.
func allShells() [][]string {
	shells := [][]string{
		{"bash", "--norc", "--noediting", "-i"},
		{"zsh", "-f", "-i", "+o", "prompt_sp", "+o", "prompt_cr"},
		{"dash", "-i"},
		{"fish", "--no-config"},
	}
	if testing.Short() {
		shells = shells[:1] // the others differ in what they read, not in what they may do
	}
	return shells
}

// typeDocument has shells run the commands of a document, which has at least so many.
func typeDocument(t *testing.T, name string, least int, shells [][]string) {
	if testing.Short() && name != "README.md" {
		t.Skip("its commands do the same for every user")
	}
	t.Parallel()
	text := readProject(t, name)
	steps := readSteps(t, name, text)
	require.GreaterOrEqual(t, len(steps), least)
	for _, shell := range shells {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel() // some commands wait
			needsTools(t, shell[0], "jq", "rg")
			s := newReadmeStore(t)
			requireFuse(t, s.user)
			results := s.typeInto(shell, steps)
			if os.Getenv(updateEnv) != "" && shell[0] == "bash" {
				require.NoError(t, os.WriteFile(filepath.Join(projectRoot, name), []byte(withOutputs(text, steps, results)), 0o644))
				return
			}
			for i, got := range results {
				checkStep(t, shell[0], steps[i], got)
			}
			s.requireUnmounted()
		})
	}
}

// readSteps returns all commands of a document but those of notRun.
func readSteps(t *testing.T, name, text string) (steps []step) {
	t.Helper()
	require.Contains(t, typed, name)
	for _, b := range readDocument(t, name, text) {
		if _, excused := notRun[name][b.text[0]]; !excused && b.isCommands() {
			steps = append(steps, b.steps()...)
		}
	}
	for i := range steps {
		steps[i].file = name
	}
	return steps
}

// checkStep compares a command's status and output with what the document says. A line that bash prints tells
// that the command fails; other shells word it in their own way.
func checkStep(t *testing.T, shell string, s step, got result) {
	t.Helper()
	where := fmt.Sprintf("%s line %d: %s\n%s", s.file, s.line, s.command, got.stdout)
	fails := strings.Contains(s.output, "bash: ")
	if fails {
		require.NotZero(t, got.code, where)
	} else {
		require.Zero(t, got.code, where)
	}
	isComparable := !fails || shell == "bash" // each shell words a failure in its own way
	if s.shown && isComparable {
		isAsShown := outputMatches(s, got.stdout, sampleText())
		require.True(t, isAsShown, "%s\nThe document shows:\n%s", where, s.output)
	}
}

// sampleText is all text of the sample store.
func sampleText() string {
	var all strings.Builder
	_ = iofs.WalkDir(testdata.Demo(), ".", func(name string, d iofs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := iofs.ReadFile(testdata.Demo(), name)
			all.WriteString(name + "\n")
			all.Write(data)
		}
		return err
	})
	return all.String()
}

// newReadmeStore makes a home directory as sessionfs demo lays it out, a clone with the program, and an omp that resumes what
// is there.
func newReadmeStore(t *testing.T) *store {
	t.Helper()
	s := newStore(t, user{"self", os.Geteuid()})
	require.NoError(t, os.RemoveAll(s.source))
	require.NoError(t, os.Remove(s.mountpoint))
	s.run("demo", s.dir).ok(t)
	s.source = filepath.Join(s.dir, ".omp/agent")
	bin := s.mkdir("clone/bin")
	require.NoError(t, os.Symlink(program, filepath.Join(bin, "sessionfs")))
	omp := "#!/bin/sh\ntest \"$1\" = --resume && ls " + s.source + "/sessions/*/*_\"$2\".jsonl\n"
	tools := s.mkdir("tools")
	require.NoError(t, os.Symlink(program, filepath.Join(tools, "sessionfs")))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "omp"), []byte(omp), 0o700))
	s.chown()
	return s
}

// typeInto has a shell run the steps, in the clone, and returns how each ended. Output and errors are one.
func (s *store) typeInto(shell []string, steps []step) []result {
	t := s.t
	t.Helper()
	var script strings.Builder
	status := "$?"
	if shell[0] == "fish" {
		status = "$status"
	} else {
		script.WriteString("PS1=; PS2=\n")
	}
	fmt.Fprintf(&script, "printf '\\n%s0\\n'\n", statusMark)
	for _, step := range steps {
		fmt.Fprintf(&script, "%s\nprintf '\\n%s%%s\\n' %s\n", step.command, statusMark, status)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readmePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell[0], shell[1:]...)
	cmd.Stdin = strings.NewReader(script.String())
	if shell[0] == "fish" { // its commands would read the rest of the script
		file := filepath.Join(s.dir, "script.fish")
		require.NoError(t, os.WriteFile(file, []byte(script.String()), 0o600))
		cmd.Args = append(cmd.Args, file)
		cmd.Stdin = nil
	}
	cmd.Dir = filepath.Join(s.dir, "clone")
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal: an interactive shell would take it
	cmd.Env = []string{
		"HOME=" + s.dir, "PATH=" + filepath.Join(s.dir, "tools") + ":" + os.Getenv("PATH"), "PWD=" + cmd.Dir,
		"TMPDIR=" + testRoot, "LC_ALL=C.UTF-8", "TZ=UTC", "TERM=dumb", "GORACE=" + os.Getenv("GORACE"),
	}
	var output bytes.Buffer
	cmd.Stdout = &output
	cmd.Stderr = &output
	err := cmd.Run()
	parts := strings.Split(output.String(), "\n"+statusMark)
	require.Len(t, parts, len(steps)+2, "%s ended early: %v\n%s", shell[0], err, output.String())
	return s.resultsIn(parts[1:])
}

// resultsIn returns the results of steps in the output of a shell, which is cut at the marks: each part begins with the
// status of a step, and goes on with the output of the next one. The first status is of no step.
func (s *store) resultsIn(parts []string) (results []result) {
	s.t.Helper()
	_, output, _ := strings.Cut(parts[0], "\n")
	for _, part := range parts[1:] {
		status, next, _ := strings.Cut(part, "\n")
		code, err := strconv.Atoi(status)
		require.NoError(s.t, err, part)
		results = append(results, result{
			code:   code,
			stdout: strings.ReplaceAll(output, s.dir, shownHome),
		})
		output = next
	}
	return results
}

// A block is what a document has between two fences.
type block struct {
	line     int    // of the opening fence
	language string // sh: commands; console: commands and their output; sql: statements; others: nothing to run
	text     []string
}

// A step is one command of a document, with its output where that is printed.
type step struct {
	file    string
	line    int
	command string
	shown   bool // output is what the document shows
	output  string
}

// readBlocks finds the fenced blocks of a Markdown text.
func readBlocks(text string) ([]block, error) {
	var blocks []block
	var open *block
	for i, line := range strings.Split(text, "\n") {
		switch {
		case open != nil && line == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text = append(open.text, line)
		case strings.HasPrefix(line, "```"):
			open = &block{line: i + 1, language: line[3:]}
		case strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"):
			return nil, fmt.Errorf("line %d: code stands between fences, not indented", i+1)
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
			steps = append(steps, step{line: b.line + 1 + i, command: command, shown: b.language == "console"})
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return steps
}

// fresh finds what is new each time: the time now, a new entry's id, a new session's id and name.
var fresh = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{8}\b|` +
	`\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d([.-]\d{3}Z)?`)

// outputMatches reports whether the output got of a step is the one that the document shows. Ids and times that are new
// each time, and not in known, the text of the sample store, may differ. So may the columns of ls, which depend on the
// terminal.
func outputMatches(s step, got, known string) bool {
	if strings.HasPrefix(s.command, "ls") && !strings.Contains(s.command, "|") {
		columns := regexp.MustCompile(`\s{2,}|\n`)
		names := func(text string) []string {
			return slices.DeleteFunc(columns.Split(text, -1), func(name string) bool { return name == "" })
		}
		want := names(s.output)
		have := names(got)
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
		before := rest[:at[0]]
		found := rest[at[0]:at[1]]
		pattern.WriteString(regexp.QuoteMeta(before))
		if strings.Contains(known, found) {
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
		s := steps[i]
		got := strings.TrimRight(results[i].stdout, "\n")
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
