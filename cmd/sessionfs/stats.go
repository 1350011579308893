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

// statsFlags are the options of stats.
type statsFlags struct {
	by     string
	since  string
	until  string
	svg    string
	today  bool
	asJSON bool
	stats  *reports.Stats // empty sums by the keys of by
}

// statsCommand is sessionfs stats.
func statsCommand() *cobra.Command {
	var f statsFlags
	cmd := onSource(source.Words, &cobra.Command{
		Use:   "stats [--by WHAT] [--since WHEN] [--until WHEN] [SOURCE]",
		Short: "Tell what all sessions cost, with bars",
		Long: "Add up tokens and dollars of all sessions. Copies in forks count once, and subagents with the session " +
			"that called them. Days are local. A sum with + is too low: some answers in it have no known price. Of tools the calls " +
			"are counted. Where a client recorded no cost, list prices give one; -o prices=FILE has others, -o " +
			"prices=none leaves them out.",
		Example: "  sessionfs stats --by model,cwd --since 30d\n  sessionfs stats --by week --svg weeks.svg",
		Args:    maybeSource,
	}, f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.by, "by", reports.ByDay, "a line for each `WHAT`, or two (model,cwd): "+strings.Join(reports.Keys, ", "))
	flags.StringVar(&f.since, "since", "", "count from `WHEN` on: 2026-01-31, 2026-01, today, monday, 30d, 4w")
	flags.StringVar(&f.until, "until", "", "count until `WHEN`, the day, week or month included")
	flags.BoolVar(&f.today, "today", false, "only this day; with --json one line, for a status bar")
	flags.BoolVar(&f.asJSON, "json", false, "print a JSON object a line, with the keys of usage.jsonl")
	flags.StringVar(&f.svg, "svg", "", "draw the bars into `FILE`")
	cmd.PreRunE = f.check
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(reports.Keys, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// check refuses options that are wrong or do not go together.
func (f *statsFlags) check(*cobra.Command, []string) error {
	var err error
	f.stats, err = reports.NewStats(f.by)
	switch {
	case err != nil:
		return refuse(exitUsage, "stats: %s", err)
	case f.today && f.since+f.until != "":
		return refuse(exitUsage, "stats: --today, or --since and --until, not both")
	case f.asJSON && f.svg != "":
		return refuse(exitUsage, "stats: --json or --svg, not both")
	}
	return nil
}

func (f *statsFlags) run(cmd *cobra.Command, src *tree, _ []string) error {
	count, err := f.count(cmd)
	if err != nil {
		return err
	}
	f.stats.Prices = src.Prices()
	err = withProgress(cmd, func(ctx context.Context) error {
		return src.Costs(ctx, count, func(r reports.Row, agent string) {
			f.stats.Add(&r, agent)
		})
	})
	src.sayLeftOut(cmd)
	if err != nil {
		return err
	}
	return f.write(cmd.OutOrStdout())
}

// count returns which costs are counted.
func (f *statsFlags) count(cmd *cobra.Command) (fs.Count, error) {
	if f.today {
		f.since = "today"
		f.until = "today"
	}
	from, err := spanOf(cmd, "since", f.since)
	if err != nil {
		return fs.Count{}, err
	}
	to, err := spanOf(cmd, "until", f.until)
	if err != nil {
		return fs.Count{}, err
	}
	count := fs.Count{
		Tools: f.stats.OfTools(),
		Hours: f.stats.ByHours(),
		From:  from.Begin,
		Until: to.End,
	}
	if f.since != "" { // an older file has nothing since then
		count.Written = from.Begin.Add(-storage.ClockMargin)
	}
	if f.today { // asked for each few seconds
		count.Written = from.Begin
		f.stats.Empty = from.Begin.Format(time.DateOnly)
	}
	return count, nil
}

// write writes the sums as a picture, as JSON or as a table.
func (f *statsFlags) write(out io.Writer) error {
	switch {
	case f.svg != "":
		return os.WriteFile(f.svg, f.stats.SVG(), 0o666)
	case f.asJSON:
		return f.stats.WriteJSON(out)
	}
	width := terminalWidth(out)
	switch {
	case width < 0:
		width = reports.NoWidth
	case width == 0:
		width = reports.TableWidth
	}
	_, err := out.Write(f.stats.Table(width, blocksIn(os.Getenv), f.since == "" && isTerminal(out)))
	return err
}

// spanOf returns the span of time that an option names, the zero Span for an empty one.
func spanOf(cmd *cobra.Command, option, text string) (search.Span, error) {
	if text == "" {
		return search.Span{}, nil
	}
	s, err := search.ParseSpan(text, time.Now())
	if err != nil {
		err = refuse(exitUsage, "%s: --%s is %v", cmd.Name(), option, err)
	}
	return s, err
}

// blocksIn returns the characters of bars: eighths of a block where the locale has them, else #.
func blocksIn(getenv func(string) string) []string {
	locale := cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG"))
	if strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8") {
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
