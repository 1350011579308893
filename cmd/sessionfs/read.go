package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"syscall"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/view"
)

// sessionArgument describes SESSION.
const sessionArgument = "SESSION is an id or its beginning, a path in a mount, or a .jsonl file; " +
	"#ENTRY behind it is the branch to that entry.\n"

// showCommand is sessionfs show.
func showCommand() *cobra.Command {
	return onSource(anySession, &cobra.Command{
		Use:   "show [-s SOURCE] [SESSION | WORD...]",
		Short: "Read a session",
		Long: "Read the current branch of a session, as transcript.md in a mount has it: on a terminal in a pager " +
			"($PAGER, else less; PAGER=cat for none), elsewhere as Markdown. " + sessionArgument +
			"\nWORDs are those of sessionfs pick: the newest session that has all of them is shown. Without an " +
			"argument it is the last session of this directory, or of the nearest one above.",
		Example: "  sessionfs show tide sheets\n  sessionfs show 019d3d9#6ab2fbe0 > branch.md",
	}, func(cmd *cobra.Command, src *source, args []string) error {
		at, err := (&picker{cmd: cmd, src: src}).meant(strings.Join(args, " "))
		if err != nil {
			return err
		}
		f, err := src.Open(path.Join(at.branch(), "transcript.md"))
		if err != nil {
			return err
		}
		defer f.Close()
		return paged(cmd, func(out *screen) error {
			if out.colours {
				return colourMarkdown(out, f)
			}
			_, err := io.CopyBuffer(struct{ io.Writer }{out}, f, make([]byte, copySize))
			return err
		})
	})
}

// colourMarkdown copies a transcript with colours. Control sequences in its texts do not reach the
// terminal.
func colourMarkdown(out *screen, in io.Reader) error {
	r := bufio.NewReaderSize(in, copySize)
	var block fence
	for {
		line, err := r.ReadSlice('\n')
		text := bytes.TrimSuffix(line, []byte("\n"))
		if _, failed := out.WriteString(out.coloured(block.colourOf(text), string(text)) + string(line[len(text):])); failed != nil {
			return failed
		}
		if err == io.EOF {
			return nil
		} else if err != nil && err != bufio.ErrBufferFull { // the rest of a long line is coloured by itself
			return err
		}
	}
}

// fence is the code block in which a line is.
type fence struct {
	marks  []byte // its first line's, nil outside
	isDiff bool
}

// fenceLine matches the first line of a code block, and its last line if nothing follows the marks.
var fenceLine = regexp.MustCompile("^ *(`{3,}|~{3,})(.*)$")

// aside matches the lines of a transcript that nobody said aloud: results, notes, thoughts.
var aside = regexp.MustCompile(`^(?:\*\*Result\*\*|\*[^* ]|> )`)

// diffColours are those of the lines of a diff by their first characters.
var diffColours = map[byte]string{'+': colourGreen, '-': colourRed, '@': colourPath}

// colourOf returns the colour of the next line.
func (f *fence) colourOf(line []byte) string {
	m := fenceLine.FindSubmatch(line)
	switch {
	case m != nil && f.marks == nil:
		f.marks, f.isDiff = bytes.Clone(m[1]), string(m[2]) == "diff"
		return colourDim
	case m != nil && bytes.HasPrefix(m[1], f.marks) && len(bytes.TrimSpace(m[2])) == 0:
		f.marks = nil
		return colourDim
	case f.isDiff && f.marks != nil && len(line) > 0:
		return diffColours[line[0]]
	case f.marks != nil:
		return ""
	case bytes.HasPrefix(line, []byte("#")):
		return colourTitle
	case aside.Match(line):
		return colourDim
	}
	return ""
}

// logCommand is sessionfs log.
func logCommand() *cobra.Command {
	var all, asJSON bool
	var most uint
	cmd := onSource(anySession, &cobra.Command{
		Use:   "log [-a] [-n N] [--json] [-s SOURCE] SESSION",
		Short: "Show the tree of a session, as git log --graph does",
		Long: "Show the branches of a session, the newest first: of each message of the user and the model, each " +
			"summary and label the beginning of its entry's id, its time, what it is and how it begins. leaf is " +
			"where the session stands; what a client that resumes it does not show is lost. SESSION is an id or its " +
			"beginning, a path in a mount, or a .jsonl file.",
		Example: "  sessionfs log 019d3d9 | grep lost",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		snap, _, err := src.branch(args[0])
		if err != nil {
			return err
		}
		defer snap.Release()
		if asJSON {
			return logJSON(cmd, snap, all, most)
		}
		width := terminalWidth(cmd.OutOrStdout())
		return paged(cmd, func(out *screen) error {
			return logLines(cmd.Context(), snap, all, most, func(line *reports.LogLine) error {
				return printLog(out, snap, line, width)
			})
		})
	})
	cmd.Flags().UintVarP(&most, "max-count", "n", 0, "the first `N` entries only; 0: all")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "every entry, also results of tools and changes of settings")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a line of JSON for each")
	return cmd
}

// errEnough ends a log at its limit.
var errEnough = errors.New("enough entries")

// logLines calls each with the lines of a log, up to most entries, or of all for 0.
func logLines(
	ctx context.Context, snap *sessioncore.Snapshot, all bool, most uint, each func(*reports.LogLine) error,
) error {
	entries := uint(0)
	err := reports.Log(ctx, snap, all, func(line *reports.LogLine) error {
		if line.Entry != sessioncore.NoEntry {
			if entries++; most > 0 && entries > most {
				return errEnough
			}
		}
		return each(line)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// logJSON prints a log as objects. A session without entries is one with the key id alone.
func logJSON(cmd *cobra.Command, snap *sessioncore.Snapshot, all bool, most uint) error {
	header, _, err := snap.ReadHeader()
	if err != nil {
		return err
	}
	id, _ := header.Member("id").Text()
	type entry struct {
		Entry  string   `json:"entry"`
		Parent string   `json:"parent,omitempty"`
		Time   string   `json:"time"`
		What   string   `json:"what"`
		Marks  []string `json:"marks"`
		Text   string   `json:"text"`
	}
	type object struct {
		ID string `json:"id"`
		*entry
	}
	out, written := bufio.NewWriter(cmd.OutOrStdout()), false
	err = logLines(cmd.Context(), snap, all, most, func(line *reports.LogLine) error {
		if line.Entry == sessioncore.NoEntry {
			return nil
		}
		e := entry{snap.Name(line.Entry), "", snap.Time(line.Entry).UTC().Format("2006-01-02T15:04:05.000Z"),
			line.What, append([]string{}, line.Marks...), line.Said}
		if line.Above != sessioncore.NoEntry {
			e.Parent = snap.Name(line.Above)
		}
		written = true
		return writeJSON(out, object{id, &e})
	})
	if err == nil && !written {
		err = writeJSON(out, object{ID: id})
	}
	return cmp.Or(err, out.Flush())
}

// printLog prints a line of a log, cut at a width, if that is known.
func printLog(out *screen, snap *sessioncore.Snapshot, line *reports.LogLine, width int) error {
	colours, parts := []string{"", colourName, colourMatch, ""}, []string{line.Graph, "", "", ""}
	if line.Entry != sessioncore.NoEntry {
		parts[1] = names.Visible(line.ID)
		if len(line.Marks) > 0 {
			parts[2] = names.Visible("(" + strings.Join(line.Marks, ", ") + ")")
		}
		parts[3] = snap.Time(line.Entry).Local().Format("2006-01-02 15:04:05") + " " + names.Visible(line.What+": "+line.Said)
	}
	text, left := "", width
	for i, part := range parts {
		if i > 0 && part != "" {
			text, left = text+" ", left-1
		}
		if width > 0 {
			part = cutAt(part, left)
			left -= uniseg.StringWidth(part)
		}
		text += out.coloured(colours[i], part)
	}
	_, err := out.WriteString(strings.TrimRight(text, " ") + "\n")
	return err
}

// cutAt shortens a text that has more columns than width at its end.
func cutAt(text string, width int) string {
	switch {
	case uniseg.StringWidth(text) <= width:
		return text
	case width <= 0:
		return ""
	}
	columns := 0
	for g := uniseg.NewGraphemes(text); g.Next(); {
		if columns += g.Width(); columns >= width {
			from, _ := g.Positions()
			return text[:from] + "…"
		}
	}
	return text
}

// diffCommand is sessionfs diff.
func diffCommand() *cobra.Command {
	var asJSON bool
	cmd := onSource(anySession, &cobra.Command{
		Use:   "diff [--json] [-s SOURCE] SESSION SESSION",
		Short: "Compare two branches of a session, or two sessions, turn by turn",
		Long: "Compare two branches of a session, or two sessions such as a fork and its parent, as diff -u does. Turns are " +
			"compared by what was said and done in them, not by times and ids; of those that differ the lines of the same " +
			"speaker's turn are compared. " + sessionArgument + "\n" +
			"Exit status: 0 they say the same, 1 they differ, 2 trouble.",
		Example: "  sessionfs diff 019d3d9 019d3d9#6ab2fbe0",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		var branches [2]view.Branch
		for i, arg := range args {
			snap, end, err := src.branch(arg)
			if err != nil {
				return err
			}
			defer snap.Release()
			branches[i] = view.Branch{Session: snap, End: end}
		}
		differ := false
		err := paged(cmd, func(out *screen) (err error) {
			begun := false
			differ, err = view.Diff(cmd.Context(), branches[0], branches[1], func(text []byte) error {
				switch {
				case asJSON && !begun:
					_ = writeJSON(out, differing{args[0], args[1], true})
				case !begun:
					out.WriteString("--- " + names.Visible(args[0]) + "\n+++ " + names.Visible(args[1]) + "\n")
				}
				begun = true
				if asJSON {
					return writeJSON(out, lineOfDiff(string(text[:len(text)-1])))
				}
				line := string(text[:len(text)-1])
				_, err := out.WriteString(out.coloured(diffColours[text[0]], line) + "\n")
				return err
			})
			if err == nil && asJSON && !differ {
				err = writeJSON(out, differing{args[0], args[1], false})
			}
			return err
		})
		if err == nil && differ {
			err = ended(exitNothing)
		}
		return err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "a line of JSON for each")
	endsWithTwo(cmd)
	return cmd
}

// differing is the first object of diff --json.
type differing struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Differ bool   `json:"differ"`
}

// diffLine is a line of a difference.
type diffLine struct {
	Sign string `json:"sign"`
	Text string `json:"text"`
}

func lineOfDiff(line string) diffLine {
	if common, ok := strings.CutPrefix(line, "@@ "); ok {
		return diffLine{"@@", strings.TrimSuffix(common, " @@")}
	}
	return diffLine{line[:1], line[1:]}
}

// writeJSON writes a value as a line of JSON.
func writeJSON(out io.Writer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

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

// paged runs write. On a terminal the output of write goes through a pager: $PAGER, else less,
// which ends by itself where all fits on the screen. The pager starts with the first byte, so that
// an empty output starts none. A reader who leaves the pager early has read enough: that is no
// error, and write gets EPIPE.
func paged(cmd *cobra.Command, write func(out *screen) error) error {
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
	err := write(out)
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

// end waits until the user has read. Its error says that the pager failed, such as one that is not
// installed.
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
