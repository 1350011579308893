package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	fzf "github.com/junegunn/fzf/src"
	"github.com/spf13/pflag"

	"sessionfs/sessioncore/storage"
)

// lister sends the lines of a list as they become known, until send fails.
type lister func(ctx context.Context, send func(line string) error) error

// fuzzy lets the user choose one of the lines that list sends, and returns what is before its tab, which is not shown. Off a
// terminal the query must find one alone.
func (p *picker) fuzzy(what, query string, list lister) (string, error) {
	atTerminal := isTerminal(p.cmd.ErrOrStderr())
	if !atTerminal && query == "" {
		return "", refuse(exitUsage, "pick: there is no terminal to choose a %s in; give a QUERY that finds one alone", what)
	}
	args := []string{"--delimiter=\t", "--with-nth=2..", "--nth=1", "--exact", "--no-hscroll", "--tiebreak=index", "--no-multi"}
	find := builtIn
	if atTerminal {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		args = append(args, "--query="+query, "--layout=reverse", "--prompt="+what+"> ", "--preview-window="+window,
			"--preview="+quoted(self)+" pick"+p.given()+" --preview {1}")
		if query != "" {
			args = append(args, "--select-1", "--exit-0")
		}
		if installed, err := exec.LookPath("fzf"); err == nil {
			find = func(ctx context.Context, args []string, list lister) ([]string, error) {
				return started(ctx, installed, args, list)
			}
		}
	} else {
		args = append(args, "--filter="+query)
	}
	found, err := find(p.src.ctx, args, list)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", refuse(exitFailure, "there is no %s with %q", what, query)
	}
	var ids, lines []string
	for _, line := range found {
		id, columns, _ := strings.Cut(line, "\t")
		ids, lines = append(ids, id), append(lines, "  "+columns)
	}
	if len(ids) > 1 {
		return "", ambiguous("more than one "+what+" has "+query, lines)
	}
	return ids[0], nil
}

// window is where the end of a transcript is shown, below what it is about: in half of the terminal, the lower one where the other
// would have less than 60 columns.
const window = "right,50%,wrap,follow,~3,<60(down,50%,wrap,follow,~3)"

// given returns the flags about SOURCE that were given, as a shell reads them.
func (p *picker) given() (flags string) {
	p.cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "source", "demo":
			flags += " --" + f.Name + "=" + quoted(f.Value.String())
		case "options":
			for _, o := range p.src.flags.options {
				flags += " -o " + quoted(o)
			}
		}
	})
	return flags
}

// quoted returns a word as a shell reads it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// errChosen ends a list of which no more is needed.
var errChosen = errors.New("one is chosen")

// builtIn is the fuzzy finder that is part of the program.
func builtIn(ctx context.Context, args []string, list lister) (found []string, err error) {
	o, err := fzf.ParseOptions(true, append(args, "--no-tmux", "--with-shell=sh -c"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	in, out := make(chan string), make(chan string)
	o.Input, o.Output = in, out
	listed, printed := make(chan error, 1), make(chan struct{})
	go storage.Guarded(func() {
		defer close(in)
		listed <- list(ctx, func(line string) error {
			select {
			case in <- line:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})()
	go storage.Guarded(func() {
		defer close(printed)
		for line := range out {
			found = append(found, line)
		}
	})()
	status, err := fzf.Run(o)
	cancel(errChosen)
	close(out)
	<-printed
	return found, endOf(status, err, <-listed)
}

// started runs the fuzzy finder that is installed.
func started(ctx context.Context, name string, args []string, list lister) (found []string, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
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
	ctx, cancel := context.WithCancelCause(ctx)
	listed := make(chan error, 1)
	go storage.Guarded(func() {
		defer in.Close()
		listed <- list(ctx, func(line string) error {
			if _, err := in.Write([]byte(line + "\n")); err != nil {
				return errChosen
			}
			return context.Cause(ctx)
		})
	})()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		found = append(found, lines.Text())
	}
	cancel(errChosen)
	var exit *exec.ExitError
	if err = cmd.Wait(); errors.As(err, &exit) {
		err = nil
	}
	return found, endOf(cmd.ProcessState.ExitCode(), err, <-listed)
}

// endOf returns the error with which a fuzzy finder ended, or the list.
func endOf(status int, err, listed error) error {
	switch {
	case err != nil:
		return err
	case listed != nil && !errors.Is(listed, errChosen):
		return listed
	case status == fzf.ExitInterrupt, status == fzf.ExitError: // nothing is chosen; or it has said why not
		return ended(exitFailure)
	}
	return nil
}
