package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessionfs/mountopts"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/blame"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/search"
)

// maxBlamed is the largest file of which lines are told, in bytes.
const maxBlamed = 64 << 20

func blameCommand() *cobra.Command {
	var lines string
	var asJSON bool
	cmd := onSource(words, &cobra.Command{
		Use:   "blame [-s SOURCE] [-L FROM,TO] [--json] FILE",
		Short: "Tell which edit of which agent put each line of a file there",
		Long: "Show for each line of FILE, as it is now, the newest edit of an agent that put it there: its date, " +
			"the agent, the title of the session, the entry, and how the prompt begins; - where no agent did. ~ " +
			"marks a line of which the text alone tells that.\n\n" +
			"Off a terminal the columns are the number of the line, ~ or nothing, time, agent, session, entry, " +
			"prompt and text, with tabs between them.",
		Example: "  sessionfs blame -L 10,20 main.go",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, src *source, args []string) error {
		text, err := readBlamed(args[0])
		if err != nil {
			return err
		}
		file := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		from, to, err := lineRange(lines, len(file))
		if err != nil {
			return err
		}
		edits, unread, err := src.edits(cmd, args[0])
		if err != nil {
			return err
		}
		changes := make([][]blame.Change, len(edits))
		for i := range edits {
			changes[i] = edits[i].Changes
		}
		found := blame.Lines(text, changes)
		err = paged(cmd, func(out *screen) error {
			for i := from - 1; i < min(to, len(found)); i++ {
				var e *blame.Edit
				if n := found[i].Edit; n != blame.Nobody {
					e = &edits[n]
				}
				line := blamedLine{src, i + 1, file[i], e, found[i].Exact}
				if asJSON {
					line.writeJSON(out)
				} else {
					line.write(out)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return sayUnread(cmd, unread)
	})
	cmd.Flags().StringVarP(&lines, "lines", "L", "", "only the lines `FROM,TO`, or the line FROM")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a line of JSON for each")
	cmd.ValidArgsFunction = nil // files of any kind
	return cmd
}

// readBlamed reads a regular file.
func readBlamed(name string) (string, error) {
	info, err := os.Stat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxBlamed) {
		err = refuse(exitUsage, "blame: %s is no file of at most %d MiB", name, maxBlamed>>20)
	}
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(name)
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}

// lineRange returns the lines that -L asks for, of so many.
func lineRange(text string, count int) (from, to int, err error) {
	if text == "" {
		return 1, count, nil
	}
	first, last, both := strings.Cut(text, ",")
	from, err = strconv.Atoi(first)
	if to = from; err == nil && both {
		to, err = strconv.Atoi(last)
	}
	if err != nil || from < 1 || to < from {
		return 0, 0, refuse(exitUsage, "blame: -L %s: it needs FROM,TO, such as 10,20", text)
	}
	return from, to, nil
}

// edits returns the edits of a file in all sessions, the oldest first, and the sessions that could
// not be searched.
func (src *source) edits(cmd *cobra.Command, file string) (list []blame.Edit, unread []*search.Found, err error) {
	_, touched, err := touchedBy(file)
	if err != nil {
		return nil, nil, err
	}
	searcher, err := src.Searcher(nil, 0)
	if err != nil {
		return nil, nil, err
	}
	err = withProgress(cmd, func(ctx context.Context) error {
		result, err := searcher.Search(ctx, touched)
		if err != nil {
			return err
		}
		unread = result.Unread
		list, err = blame.Edits(ctx, result.Hits, touched, func(h *search.Hit) (*sessioncore.Snapshot, error) {
			return src.Snapshot(ctx, h.Directory())
		})
		return err
	})
	return list, unread, err
}

// agentOf returns the name of the agent whose session a directory of the tree shows.
func (src *source) agentOf(dir string) string {
	if src.Source == mountopts.All || src.Demo {
		return strings.Split(dir, "/")[1]
	}
	return agentOf(src.Source).Name
}

// blamedLine is a line of a file with its edit, nil for none.
type blamedLine struct {
	src    *source
	number int
	text   string
	edit   *blame.Edit
	exact  bool
}

// write writes the line for reading, or with tabs between columns.
func (l *blamedLine) write(out *screen) {
	columns := []any{"", "-", "", "", "", ""}
	if e := l.edit; e != nil {
		columns = []any{"", e.When(), l.src.agentOf(e.Directory()), e.Session, e.Entry, e.Prompt}
		if !l.exact {
			columns[0] = "~"
		}
	}
	if !out.people {
		said := fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", columns...)
		fmt.Fprintf(out, "%d\t%s\t%s\n", l.number, names.VisibleExcept(said, "\t"), l.text)
		return
	}
	if l.edit != nil {
		columns[1] = l.edit.Time.Local().Format(time.DateOnly)
	}
	said := fmt.Sprintf("%1s%-10s %-7.7s %-20.20s %-8.8s %-24.24s", columns...)
	fmt.Fprintf(out, "%s%5d  %s", out.coloured(colourPath, names.VisibleLine(said)), l.number, onScreen(out, l.text+"\n"))
}

// blameJSON has the members of blame --json about the edit of a line.
type blameJSON struct {
	Time    string `json:"time"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Entry   string `json:"entry"`
	Prompt  string `json:"prompt"`
	Exact   bool   `json:"exact"`
}

// writeJSON writes the line as an object.
func (l *blamedLine) writeJSON(out io.Writer) {
	line := struct {
		Line int    `json:"line"`
		Text string `json:"text"`
		*blameJSON
	}{Line: l.number, Text: l.text}
	if e := l.edit; e != nil {
		line.blameJSON = &blameJSON{e.When(), l.src.agentOf(e.Directory()), e.Session, e.Entry, e.Prompt, l.exact}
	}
	_ = writeJSON(out, line) // a broken pipe shows when out is flushed
}

// onScreen makes the text of a file harmless for a terminal.
func onScreen(out *screen, text string) string {
	if !out.people {
		return text
	}
	return names.VisibleExcept(text, "\n\t")
}

// printEdits prints the edits of a file as diffs below their prompts, the newest first.
func (src *source) printEdits(cmd *cobra.Command, name string) error {
	edits, unread, err := src.edits(cmd, name)
	if err != nil {
		return err
	}
	err = paged(cmd, func(out *screen) error {
		for i, e := range slices.Backward(edits) {
			if i < len(edits)-1 {
				out.WriteString("\n")
			}
			by := e.Time.Local().Format("2006-01-02 15:04:05") + " by " + src.agentOf(e.Directory())
			out.WriteString(onScreen(out, e.Diff(name, by)))
		}
		return nil
	})
	if err == nil {
		err = sayUnread(cmd, unread)
	}
	if err == nil && len(edits) == 0 {
		err = ended(exitNothing)
	}
	return err
}
