package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/view"
	"sessionfs/source"
)

// sessionArgument describes SESSION.
const sessionArgument = "SESSION is an id or its beginning, a path in a mount, or a .jsonl file; " +
	"#ENTRY behind it is the branch to that entry.\n"

// showOptions are the options of show.
type showOptions struct {
	words []string // the arguments
}

// showCommand is sessionfs show.
func showCommand() *cobra.Command {
	return onSource(source.Sessions, &cobra.Command{
		Use:   "show [-s SOURCE] [SESSION | HIT | WORD...]",
		Short: "Read a session",
		Long: "Read the current branch of a session, as transcript.md in a mount has it: on a terminal in a pager " +
			"($PAGER, else less; PAGER=cat for none), elsewhere as Markdown. " + sessionArgument +
			"HIT is what sessionfs search prints for one: a terminal shows its branch at that entry; elsewhere it is " +
			"the entry with three on each side.\n" +
			"\nWORDs are those of sessionfs pick: the newest session that has all of them is shown. Without an " +
			"argument it is the last session of this directory, or of the nearest one above.",
		Example: "  sessionfs show tide sheets\n  sessionfs show 019d3d9#6ab2fbe0 > branch.md",
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		return runShow(cmd.Context(), showOptions{words: args}, src, consoleOf(cmd))
	})
}

// runShow prints the transcript of a session, or an entry with those around it.
func runShow(ctx context.Context, o showOptions, src *sourceTree, c *console) error {
	p := &picker{console: c, src: src}
	at, err := p.meant(ctx, strings.Join(o.words, " "))
	if err != nil {
		return err
	}
	if at.Entry != "" && (isTerminal(c.out) || isEntryFile(o.words)) {
		return src.showAround(ctx, c, at)
	}
	f, err := src.Open(path.Join(at.Branch(), "transcript.md"))
	if err != nil {
		return err
	}
	defer f.Close()
	return c.paged(func(out *view.Screen) error {
		return out.WriteTranscript(f)
	})
}

// shownAround is how many entries are shown on each side of a hit off a terminal.
const shownAround = 3

// isEntryFile reports whether the argument is the path of an entry's file, as a search prints it.
func isEntryFile(args []string) bool {
	return len(args) == 1 && strings.Contains(args[0], "/entries/") && strings.HasSuffix(args[0], ".json")
}

// showAround shows a branch with an entry: on a terminal all of it, in a pager at the entry, elsewhere
// the entry with some around it.
func (src *sourceTree) showAround(ctx context.Context, c *console, at source.NamedSession) error {
	snap, err := src.Snapshot(ctx, at.Dir)
	if err != nil {
		return err
	}
	defer snap.Release()
	passage, err := passageOf(ctx, snap, at, shownAround)
	if err != nil {
		return err
	}
	defer passage.Document.Close()
	line := 0
	if isTerminal(c.out) {
		passage.From = 0 // the pager has the whole branch
		passage.To = passage.Document.Size()
		line, err = passage.Lines(passage.At)
		if err != nil {
			return err
		}
	}
	return c.pagedAt(line, func(out *view.Screen) error {
		return out.WriteTranscript(passage.Text())
	})
}

// passageOf returns the entry that at names in a session, with as many entries on each side as around says.
// Callers must close its document before they release the session.
func passageOf(ctx context.Context, snap *sessioncore.Snapshot, at source.NamedSession, around int) (*view.Passage, error) {
	entry, err := source.EndOf(snap, at.Entry)
	if err != nil {
		return nil, err
	}
	depth := strings.Count(at.Dir, "/") + 1 // links are relative to the directory of the session
	toRoot := strings.Repeat("../", depth)
	links := view.Links{Entries: "entries/", Blobs: toRoot + "blobs/"}
	return view.Around(ctx, snap, entry, around, links)
}

// logOptions are the options of log.
type logOptions struct {
	session string
	most    uint // entries; 0 for all
	all     bool // every entry, of any kind
	asJSON  bool
}

// logCommand is sessionfs log.
func logCommand() *cobra.Command {
	var o logOptions
	cmd := onSource(source.Sessions, &cobra.Command{
		Use:   "log [-a] [-n N] [--json] [-s SOURCE] SESSION",
		Short: "Show the tree of a session, as git log --graph does",
		Long: "Show the branches of a session, the newest first: of each message of the user and the model, each " +
			"summary and label the beginning of its entry's id, its time, what it is and its first paragraphs on one " +
			"line: whole ones, as few as have more than 80 characters. A terminal cuts a line at its width. leaf is " +
			"where the session stands; what a client that resumes it does not show is lost. SESSION is an id or its " +
			"beginning, a path in a mount, or a .jsonl file.",
		Example: "  sessionfs log 019d3d9 | grep lost",
		Args:    oneArg,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.session = args[0]
		return runLog(cmd.Context(), o, src, consoleOf(cmd))
	})
	cmd.Flags().UintVarP(&o.most, "max-count", "n", 0, "the first `N` entries only; 0: all")
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "every entry, also results of tools and changes of settings")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "a line of JSON for each")
	return cmd
}

// runLog prints the tree of a session.
func runLog(ctx context.Context, o logOptions, src *sourceTree, c *console) error {
	snap, _, err := src.Branch(o.session)
	if err != nil {
		return err
	}
	defer snap.Release()
	log := view.Log{
		Session: snap,
		Most:    o.most,
		All:     o.all,
	}
	if o.asJSON {
		out := bufio.NewWriter(c.out)
		err := log.WriteJSON(ctx, out)
		flushed := out.Flush()
		if err == nil {
			err = flushed
		}
		return err
	}
	width := terminalWidth(c.out)
	return c.paged(func(out *view.Screen) error {
		return log.WriteText(ctx, out, width)
	})
}

// diffOptions are the options of diff.
type diffOptions struct {
	sessions [2]string
	asJSON   bool
}

// diffCommand is sessionfs diff.
func diffCommand() *cobra.Command {
	var o diffOptions
	cmd := onSource(source.Sessions, &cobra.Command{
		Use:   "diff [--json] [-s SOURCE] SESSION SESSION",
		Short: "Compare two branches of a session, or two sessions, turn by turn",
		Long: "Compare two branches of a session, or two sessions such as a fork and its parent, as diff -u does. Turns are " +
			"compared by what was said and done in them, not by times and ids; of those that differ the lines of the same " +
			"speaker's turn are compared. " + sessionArgument + "\n" +
			"Exit status: 0 they say the same, 1 they differ, 2 trouble.",
		Example: "  sessionfs diff 019d3d9 019d3d9#6ab2fbe0",
		Args:    twoArgs,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.sessions = [2]string(args)
		return runDiff(cmd.Context(), o, src, consoleOf(cmd))
	})
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "a line of JSON for each")
	endsWithTwo(cmd)
	return cmd
}

// runDiff prints the difference of two branches. If there is any, it ends the command with exitNothing.
func runDiff(ctx context.Context, o diffOptions, src *sourceTree, c *console) error {
	var branches [2]view.ShownBranch
	for i, name := range o.sessions {
		snap, end, err := src.Branch(name)
		if err != nil {
			return err
		}
		defer snap.Release()
		branches[i] = view.ShownBranch{Session: snap, End: end}
	}
	differ := false
	err := c.paged(func(out *view.Screen) (err error) {
		differ, err = out.WriteDiff(ctx, o.sessions, branches, o.asJSON)
		return err
	})
	if err == nil && differ {
		err = ended(exitNothing)
	}
	return err
}

// paged runs write. On a terminal the output of write goes through a pager: $PAGER, else less,
// which ends by itself where all fits on the screen. The pager starts with the first byte, so that
// an empty output starts none. A reader who leaves the pager early has read enough: that is no
// error, and write gets EPIPE.
func (c *console) paged(write func(out *view.Screen) error) error {
	return c.pagedAt(0, write)
}

// pagedAt is paged for a reader who begins behind so many lines: less shows these above the screen. Other pagers begin
// at the top.
func (c *console) pagedAt(lines int, write func(out *view.Screen) error) error {
	if !isTerminal(c.out) {
		return flushAfter(write, &view.Screen{Writer: bufio.NewWriter(c.out)})
	}
	words := pagerWords(os.LookupEnv, exec.LookPath)
	if words == nil {
		return flushAfter(write, terminalScreen(c.out))
	}
	p := &pager{
		words:   atLine(words, lines),
		out:     c.out,
		console: c,
		stderr:  c.err,
	}
	err := flushAfter(write, terminalScreen(p))
	hasStarted := p.in != nil
	if !hasStarted { // write has printed nothing
		return err
	}
	failed := p.end()
	if failed != nil {
		return failed
	}
	hasLeft := errors.Is(err, syscall.EPIPE) // the reader has seen enough
	if hasLeft {
		return nil
	}
	return err
}

// terminalScreen returns a screen for people: out is a terminal, or a pager.
func terminalScreen(out io.Writer) *view.Screen {
	return &view.Screen{
		Writer:  bufio.NewWriter(out),
		People:  true,
		Colours: wantsColours(os.Getenv),
	}
}

// flushAfter runs write on a screen and flushes it. It returns the first error.
func flushAfter(write func(out *view.Screen) error, out *view.Screen) error {
	err := write(out)
	flushed := out.Flush()
	if err == nil {
		err = flushed
	}
	return err
}

// pagerWords returns the command line of the pager, nil if there is to be none. lookup has the variables of the
// environment, and lookPath finds programs.
func pagerWords(lookup func(string) (string, bool), lookPath func(string) (string, error)) []string {
	term, _ := lookup("TERM")
	if term == "" || term == "dumb" { // pagers ask for a key before they show anything there
		return nil
	}
	own, isSet := lookup("PAGER")
	own = strings.TrimSpace(own)
	isNone := isSet && own == ""
	if own == "cat" || isNone {
		return nil
	}
	if own != "" {
		return []string{"sh", "-c", own} // as git and man do: it may have options
	}
	less, err := lookPath("less")
	if err == nil {
		return []string{less, "-FRX"}
	}
	return nil
}

// atLine adds an option to the command line of a pager, which it may change, so that the pager begins behind the
// first lines. A pager of the user gets the option only if it is less.
func atLine(words []string, lines int) []string {
	if len(words) == 0 || lines == 0 {
		return words
	}
	option := fmt.Sprintf("+%d", lines+2) // lines count from 1, and a blank one stands before the entry
	isOwn := words[0] == "sh"
	if !isOwn {
		return append(words, option)
	}
	last := len(words) - 1
	program, _, _ := strings.Cut(words[last], " ")
	if path.Base(program) == "less" {
		words[last] += " " + option
	}
	return words
}

// pager is the input of a pager that starts with the first write.
type pager struct {
	words   []string  // the command line
	out     io.Writer // the terminal
	console *console
	stderr  io.Writer      // the console's own
	child   *exec.Cmd      // nil until the start
	in      io.WriteCloser // the input of child, nil until it has started
}

// Write implements io.Writer. It starts the pager if that has not started.
func (p *pager) Write(text []byte) (int, error) {
	if p.in == nil {
		err := p.start()
		if err != nil {
			return 0, err
		}
	}
	return p.in.Write(text)
}

// start starts the pager's command. Until it ends, messages of the console for the same terminal go through the
// pager too.
func (p *pager) start() error {
	p.child = exec.Command(p.words[0], p.words[1:]...)
	p.child.Stdout = p.out
	p.child.Stderr = p.stderr
	// less needs these for colours, unless the user has set others.
	options := os.Getenv("LESS")
	if options == "" {
		options = "FRX"
	}
	p.child.Env = append(os.Environ(), "LESS="+options)
	in, err := p.child.StdinPipe()
	if err != nil {
		return err
	}
	err = p.child.Start()
	if err != nil {
		return err
	}
	p.in = in
	if isTerminal(p.stderr) { // a warning would be written over
		p.console.err = in
	}
	return nil
}

// end waits until the user has read, and gives the console its own stderr back. An error says that the pager
// failed, such as one that is not installed.
func (p *pager) end() error {
	_ = p.in.Close()
	_ = p.child.Wait()
	p.console.err = p.stderr
	status := p.child.ProcessState.ExitCode()
	if status > 0 {
		return refuse(exitFailure, "%s: the pager %q ended with status %d: set PAGER to one that is installed, or to cat for none",
			p.console.name, os.Getenv("PAGER"), status)
	}
	return nil
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool { return terminalWidth(out) >= 0 }

// terminalWidth returns how many columns a terminal has, 0 if it does not tell, and -1 for another
// file.
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
