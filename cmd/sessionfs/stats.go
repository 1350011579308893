package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/source"
)

// statsOptions are the options of stats.
type statsOptions struct {
	by     string
	since  string
	until  string
	svg    string
	today  bool
	asJSON bool
}

// statsCommand is sessionfs stats.
func statsCommand() *cobra.Command {
	var o statsOptions
	cmd := onSource(source.Words, &cobra.Command{
		Use:   "stats [--by WHAT] [--since WHEN] [--until WHEN] [SOURCE]",
		Short: "Tell what all sessions cost, with bars",
		Long: "Add up tokens and dollars of all sessions. Copies in forks count once, and subagents with the session " +
			"that called them. Days are local. A sum with + is too low: some answers in it have no known price. Of tools the calls " +
			"are counted. Where a client recorded no cost, list prices give one; -o prices=FILE has others, -o " +
			"prices=none leaves them out.",
		Example: "  sessionfs stats --by model,cwd --since 30d\n  sessionfs stats --by week --svg weeks.svg",
		Args:    maybeSource,
	}, func(cmd *cobra.Command, src *sourceTree, _ []string) error {
		return runStats(cmd.Context(), o, src, consoleOf(cmd))
	})
	flags := cmd.Flags()
	flags.StringVar(&o.by, "by", reports.ByDay, "a line for each `WHAT`, or two (model,cwd): "+strings.Join(reports.Keys, ", "))
	flags.StringVar(&o.since, "since", "", "count from `WHEN` on: 2026-01-31, 2026-01, today, monday, 30d, 4w")
	flags.StringVar(&o.until, "until", "", "count until `WHEN`, the day, week or month included")
	flags.BoolVar(&o.today, "today", false, "only this day; with --json one line, for a status bar")
	flags.BoolVar(&o.asJSON, "json", false, "print a JSON object a line, with the keys of usage.jsonl")
	flags.StringVar(&o.svg, "svg", "", "draw the bars into `FILE`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		return o.check()
	}
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(reports.Keys, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// check refuses options that are wrong or do not go together.
func (o *statsOptions) check() error {
	_, err := reports.NewStats(o.by)
	switch {
	case err != nil:
		return refuse(exitUsage, "stats: %s", err)
	case o.today && o.since+o.until != "":
		return refuse(exitUsage, "stats: --today, or --since and --until, not both")
	case o.asJSON && o.svg != "":
		return refuse(exitUsage, "stats: --json or --svg, not both")
	}
	return nil
}

// runStats prints the costs of sessions.
func runStats(ctx context.Context, o statsOptions, src *sourceTree, c *console) error {
	if o.today {
		o.since = "today"
		o.until = "today"
	}
	sums, err := reports.NewStats(o.by)
	if err != nil {
		return err
	}
	count, err := o.count(c, sums)
	if err != nil {
		return err
	}
	sums.Prices = src.Prices()
	err = c.withProgress(ctx, func(ctx context.Context) error {
		return src.Costs(ctx, count, func(r reports.Row, agent string) {
			sums.Add(&r, agent)
		})
	})
	src.sayLeftOut(c)
	if err != nil {
		return err
	}
	return o.write(c.out, sums)
}

// count returns the choice of the costs that are counted in sums. With --today it sets the row of sums for a day
// without costs.
func (o *statsOptions) count(c *console, sums *reports.Stats) (fs.Count, error) {
	from, err := c.spanOf("since", o.since)
	if err != nil {
		return fs.Count{}, err
	}
	to, err := c.spanOf("until", o.until)
	if err != nil {
		return fs.Count{}, err
	}
	count := fs.Count{
		Tools:  sums.OfTools(),
		Hours:  sums.ByHours(),
		Titles: sums.OfSessions(),
		From:   from.Begin,
		Until:  to.End,
	}
	if o.since != "" { // a file that was written before has no costs since then
		count.Written = from.Begin.Add(-storage.ClockMargin)
	}
	if o.today { // a status bar asks every few seconds, so that no more files are read than needed
		count.Written = from.Begin
		sums.Empty = from.Begin.Format(time.DateOnly)
	}
	return count, nil
}

// write writes the sums as a picture, as JSON or as a table.
func (o *statsOptions) write(out io.Writer, sums *reports.Stats) error {
	switch {
	case o.svg != "":
		return os.WriteFile(o.svg, sums.SVG(), 0o666)
	case o.asJSON:
		return sums.WriteJSON(out)
	}
	width := terminalWidth(out)
	switch {
	case width < 0: // no terminal
		width = reports.NoWidth
	case width == 0: // one that does not tell
		width = reports.TableWidth
	}
	isRecent := o.since == "" && isTerminal(out)
	table := sums.Table(width, blocksIn(os.Getenv), isRecent)
	_, err := out.Write(table)
	return err
}

// spanOf returns the span of time that an option names, the zero Span for an empty one.
func (c *console) spanOf(option, text string) (search.Span, error) {
	if text == "" {
		return search.Span{}, nil
	}
	s, err := search.ParseSpan(text, time.Now())
	if err != nil {
		err = refuse(exitUsage, "%s: --%s is %v", c.name, option, err)
	}
	return s, err
}

// blocksIn returns the characters of bars: eighths of a block where the locale has them, else #.
func blocksIn(getenv func(string) string) []string {
	locale := cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")) // in the order of locale(7)
	plain := strings.ReplaceAll(strings.ToLower(locale), "-", "")          // it may be UTF-8 or utf8
	if strings.Contains(plain, "utf8") {
		return []string{"█", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}
	}
	return []string{"#"}
}

// maybeSource accepts no arguments, or a file or directory that is SOURCE.
func maybeSource(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		_, err := os.Stat(args[0])
		if err == nil {
			return nil
		}
		isPath := strings.ContainsAny(args[0], "/.")
		if isPath && errors.Is(err, iofs.ErrNotExist) {
			return fs.Refuse(fs.ErrSource, "%s does not exist", args[0])
		}
	}
	return noArgs(cmd, args)
}
