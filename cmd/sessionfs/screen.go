package main

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/names"
)

// The colours of text on a terminal. Those of a match and its path are grep's.
const (
	colourMatch = "\x1b[1;31m"
	colourPath  = "\x1b[35m"
	colourTitle = "\x1b[1m"
	colourDim   = "\x1b[2m"
	colourGreen = "\x1b[32m"
	colourRed   = "\x1b[31m"
	colourName  = "\x1b[33m"
	colourEnd   = "\x1b[0m"
)

// screen is the output of a command whose text people may read in a pager.
type screen struct {
	*bufio.Writer
	people  bool // it is a terminal
	colours bool // the terminal gets colours
}

// coloured returns text in a colour where the screen has colours.
func (s *screen) coloured(colour, text string) string {
	if !s.colours || colour == "" || text == "" {
		return text
	}
	return colour + text + colourEnd
}

// paged runs print. On a terminal the output of print goes through a pager: $PAGER, else less, which ends by itself where all fits
// on the screen. The pager starts with the first byte, so that an empty output starts none. A reader who leaves the pager early has
// read enough: that is no error, and print gets EPIPE.
func paged(cmd *cobra.Command, print func(out *screen) error) error {
	people := isTerminal(cmd.OutOrStdout())
	p := &pager{out: cmd.OutOrStdout(), cmd: cmd}
	to := p.out
	if people {
		p.words = pagerWords(os.LookupEnv, exec.LookPath)
	}
	if p.words != nil {
		to = p
	}
	out := &screen{bufio.NewWriter(to), people, people && wantsColours(os.Getenv)}
	err := print(out)
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	if p.in == nil {
		return err
	}
	if closed := p.end(); closed != nil {
		return closed
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// pagerWords returns the command line of the pager, nil if there is to be none.
func pagerWords(lookup func(string) (string, bool), lookPath func(string) (string, error)) []string {
	if term, _ := lookup("TERM"); term == "" || term == "dumb" { // pagers ask for a key before they show anything there
		return nil
	}
	own, set := lookup("PAGER")
	own = strings.TrimSpace(own)
	if own == "cat" || own == "" && set {
		return nil
	}
	if own != "" {
		return []string{"sh", "-c", own} // as git and man do: it may have options
	}
	if less, err := lookPath("less"); err == nil {
		return []string{less, "-FRX"}
	}
	return nil
}

// pager is the input of a pager that starts with the first write.
type pager struct {
	words []string  // nil for no pager
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
	// less needs these for colours, unless the user has set others.
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

// end waits until the user has read. Its error says that the pager failed, such as one that is not installed.
func (p *pager) end() error {
	_ = p.in.Close()
	_ = p.child.Wait()
	p.cmd.SetErr(nil) // the root's again
	if status := p.child.ProcessState.ExitCode(); status > 0 {
		return refuse(exitFailure, "%s: the pager %q ended with status %d: set PAGER to one that is installed, or to cat for none",
			p.cmd.Name(), os.Getenv("PAGER"), status)
	}
	return nil
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool { return terminalWidth(out) >= 0 }

// terminalWidth returns how many columns a terminal has, 0 if it does not tell, and -1 for another file.
func terminalWidth(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return -1
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return -1
	}
	return int(size.Col)
}

// wantsColours reports whether a terminal gets colours (no-color.org).
func wantsColours(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "" && getenv("TERM") != "dumb"
}

// visible replaces the characters that could change the state of a terminal.
func visible(name string) string { return mask(name, "") }

// visibleText is visible for text, in which tabs are common.
func visibleText(text string) string { return visible(strings.ReplaceAll(text, "\t", " ")) }

// visibleLines is visible for a text of lines.
func visibleLines(text string) string { return mask(text, "\n") }

// mask replaces the control characters in text but for those in keep.
func mask(text, keep string) string {
	return strings.Map(func(r rune) rune {
		if (names.IsControl(r) || r == utf8.RuneError) && !strings.ContainsRune(keep, r) {
			return '?'
		}
		return r
	}, text)
}
