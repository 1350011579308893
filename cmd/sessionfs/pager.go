package main

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// screen is where a command prints what people may want to read in a pager.
type screen struct {
	io.Writer
	people  bool // it is a terminal
	colours bool // that shows colours, and shall
}

// paged runs print. On a terminal what that prints goes through a pager: $PAGER, else less, which ends by itself where all fits
// on the screen. It starts with the first byte, so that nothing to read starts none. Whoever leaves the pager early has read
// enough; that is no error, and print gets EPIPE.
func paged(cmd *cobra.Command, print func(out *screen) error) error {
	out := &screen{Writer: cmd.OutOrStdout(), people: isTerminal(cmd.OutOrStdout())}
	out.colours = out.people && wantsColours(os.Getenv)
	words := pagerWords(os.LookupEnv, exec.LookPath)
	if !out.people || words == nil {
		return print(out)
	}
	p := &pager{words: words, out: out.Writer, cmd: cmd}
	out.Writer = p
	err := print(out)
	if closed := p.end(); closed != nil {
		return closed
	}
	if p.in != nil && errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// pagerWords returns the command line of the pager, nil if there is to be none.
func pagerWords(lookup func(string) (string, bool), lookPath func(string) (string, error)) []string {
	if term, _ := lookup("TERM"); term == "" || term == "dumb" { // pagers ask for a key before they show anything there
		return nil
	}
	switch own, set := lookup("PAGER"); strings.TrimSpace(own) {
	case "cat":
		return nil
	case "":
		if set {
			return nil
		}
	default:
		return []string{"sh", "-c", own} // as git and man do: it may have options
	}
	if less, err := lookPath("less"); err == nil {
		return []string{less, "-FRX"}
	}
	return nil
}

// pager is the input of a pager that is started when something is to be read.
type pager struct {
	words []string
	out   io.Writer // the terminal
	cmd   *cobra.Command
	child *exec.Cmd
	in    io.WriteCloser
}

// Write implements io.Writer.
func (p *pager) Write(text []byte) (int, error) {
	if p.in == nil {
		if err := p.start(); err != nil {
			return 0, err
		}
	}
	return p.in.Write(text)
}

func (p *pager) start() (err error) {
	p.child = exec.Command(p.words[0], p.words[1:]...)
	p.child.Stdout, p.child.Stderr = p.out, p.cmd.ErrOrStderr()
	// What less needs for colours, where the user has not chosen.
	p.child.Env = append(os.Environ(), "LESS="+cmp.Or(os.Getenv("LESS"), "FRX"))
	in, err := p.child.StdinPipe()
	if err != nil {
		return err
	}
	if err = p.child.Start(); err != nil {
		return err
	}
	p.in = in
	if isTerminal(p.cmd.ErrOrStderr()) { // a warning would be written over
		p.cmd.SetErr(in)
	}
	return nil
}

// end waits until the user has read. Its error says that the pager failed, as one that is not there.
func (p *pager) end() error {
	if p.in == nil {
		return nil
	}
	_ = p.in.Close()
	_ = p.child.Wait()
	p.cmd.SetErr(nil) // the root's again
	if status := p.child.ProcessState.ExitCode(); status > 0 {
		return refuse(exitFailure, "%s: the pager %q ended with status %d: set PAGER to one that is installed, or to cat for none",
			p.cmd.Name(), os.Getenv("PAGER"), status)
	}
	return nil
}
