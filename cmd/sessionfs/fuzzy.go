package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"

	fzf "github.com/junegunn/fzf/src"
	"github.com/spf13/cobra"

	"sessionfs/sessioncore/storage"
	"sessionfs/source"
)

// A lineSource sends the lines of a list as they become known, many at once: the value to return,
// columns to show and search, and the id, with tabs between them. An error of send ends it.
type lineSource func(ctx context.Context, send sender) error

// A sender takes lines of a list.
type sender func(lines ...string) error

// fuzzy lets the user choose one of the lines that list sends, and returns its value. noun is the word for a
// line: session or branch. Off a terminal the query must find exactly one.
func (p *picker) fuzzy(ctx context.Context, noun, query string, list lineSource) (string, error) {
	isInteractive := isTerminal(p.console.err)
	if !isInteractive && query == "" {
		return "", refuse(exitUsage, "pick: there is no terminal to choose a %s in; "+
			"give a QUERY that finds one alone", noun)
	}
	var found []string
	var err error
	if isInteractive {
		found, err = p.atTerminal(ctx, noun, query, list)
	} else {
		found, err = withWords(ctx, query, list)
	}
	if err != nil {
		return "", err
	}
	if len(found) == 0 && query == "" { // fzf does not say which words were typed
		return "", refuse(exitFailure, "no %s is chosen", noun)
	}
	if len(found) == 0 {
		return "", p.src.NotFound(query, "as its id or path, or in its title, directory or agent")
	}
	var ids, lines []string
	for _, line := range found {
		id, columns, _ := strings.Cut(line, "\t")
		ids = append(ids, id)
		lines = append(lines, "  "+strings.ReplaceAll(columns, "\t", "  "))
	}
	if len(ids) > 1 {
		return "", source.Ambiguous("more than one "+noun+" has "+query, lines)
	}
	return ids[0], nil
}

// withWords returns the lines of a list that have all words of a query in their columns, in any case.
func withWords(ctx context.Context, query string, list lineSource) (found []string, err error) {
	words := strings.Fields(strings.ToLower(query))
	err = list(ctx, func(lines ...string) error {
		for _, line := range lines {
			columns := strings.Split(line, "\t")[1] // between the value and the id
			if hasWords(strings.ToLower(columns), words) {
				found = append(found, line)
			}
		}
		return nil
	})
	return found, err
}

// hasWords reports whether a text has all of several words.
func hasWords(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// window places the preview, a summary with the end of the transcript, in the right half of the
// terminal, or in the lower one where the right one would have less than 60 columns.
const window = "right,50%,wrap,follow,~3,<60(down,50%,wrap,follow,~3)"

// errChosen ends a list after the line that was chosen.
var errChosen = errors.New("one is chosen")

// fzfWords returns the command line of fzf: the one that is installed, or the one in this program. noun is its
// prompt.
func (p *picker) fzfWords(noun, query string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := []string{self, fzfWord}
	installed, err := exec.LookPath("fzf")
	if err == nil {
		words = []string{installed}
	}
	words = append(words,
		"--delimiter=\t", "--with-nth=2..", "--nth=1", // the value is not shown, and the columns alone are searched
		"--exact", "--tiebreak=index", "--no-multi", "--query="+query,
		"--no-hscroll", "--layout=reverse", "--prompt="+noun+"> ", "--preview-window="+window,
		"--preview="+quoted(self)+" pick"+p.src.flags.given()+" --preview {1}")
	if query != "" {
		words = append(words, "--select-1", "--exit-0") // no choice of one line or none
	}
	return words, nil
}

// atTerminal has fzf show the lines. It returns the chosen one, or none if the query finds none. If the user leaves
// without a choice, the error is an exit status.
func (p *picker) atTerminal(ctx context.Context, noun, query string, list lineSource) (found []string, err error) {
	words, err := p.fzfWords(noun, query)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "SHELL=/bin/sh") // for the preview
	cmd.Stderr = os.Stderr                          // where it draws
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	listed := make(chan error, 1)
	go storage.Guarded(func() {
		defer in.Close()
		listed <- list(ctx, func(lines ...string) error {
			text := strings.Join(append(lines, ""), "\n") // each ends with a line break
			_, err := io.WriteString(in, text)
			if err != nil { // fzf has ended
				return errChosen
			}
			return nil
		})
	})()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		found = append(found, lines.Text())
	}
	_ = cmd.Wait() // the status has its error
	err = <-listed
	if errors.Is(err, errChosen) {
		err = nil
	}
	status := cmd.ProcessState.ExitCode()
	if err == nil && status != fzf.ExitOk && status != fzf.ExitNoMatch {
		err = ended(exitFailure) // nothing is chosen; or fzf has said what is wrong
	}
	return found, err
}

// given returns the flags about SOURCE that were given, as a shell reads them, each with a blank before it.
func (f *sourceFlags) given() string {
	flags := ""
	if f.demo {
		flags += " --demo"
	}
	for _, options := range f.options {
		flags += " -o " + quoted(options)
	}
	if f.source != "" {
		flags += " --source=" + quoted(f.source)
	}
	return flags
}

// quoted returns a word as a shell reads it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// fzfWord is the command that is fzf.
const fzfWord = "__fzf"

// fzfOptions are the options of fzf, as it reads them.
type fzfOptions struct {
	words []string
}

// fzfCommand is the command that is fzf.
func fzfCommand() *cobra.Command {
	return &cobra.Command{
		Use:                fzfWord,
		Short:              "Be fzf, for sessionfs pick",
		Example:            "  sessionfs pick",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return runFzf(fzfOptions{words: args})
		},
	}
}

// runFzf is fzf. Its status becomes the status of the command.
func runFzf(o fzfOptions) error {
	options, err := fzf.ParseOptions(true, append(o.words, "--no-tmux"))
	if err != nil {
		return err
	}
	status, err := fzf.Run(options)
	if err == nil && status != fzf.ExitOk {
		err = ended(status)
	}
	return err
}
