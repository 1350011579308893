package main

import (
	"cmp"
	"context"
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

// statsCommand is sessionfs stats.
func statsCommand() *cobra.Command {
	var by, since, until, svg string
	var today, asJSON bool
	var s *reports.Stats
	cmd := onSource(source.Words, &cobra.Command{
		Use:   "stats [--by WHAT] [--since WHEN] [--until WHEN] [SOURCE]",
		Short: "Tell what all sessions cost, with bars",
		Long: "Add up tokens and dollars of all sessions. Copies in forks count once, and subagents with the session " +
			"that called them. Days are local. A sum with + is too low: some answers in it have no known price. Of tools the calls " +
			"are counted. Where a client recorded no cost, list prices give one; -o prices=FILE has others, -o " +
			"prices=none leaves them out.",
		Example: "  sessionfs stats --by model,cwd --since 30d\n  sessionfs stats --by week --svg weeks.svg",
		Args:    maybeSource,
	}, func(cmd *cobra.Command, src *tree, _ []string) error {
		if today {
			since = "today"
			until = "today"
		}
		from, err := spanOf(cmd, "since", since)
		if err != nil {
			return err
		}
		to, err := spanOf(cmd, "until", until)
		if err != nil {
			return err
		}
		s.Prices = src.Prices()
		count := fs.Count{Tools: s.OfTools(), Hours: s.ByHours(), From: from.Begin, Until: to.End}
		if since != "" { // an older file has nothing since then
			count.Written = from.Begin.Add(-storage.ClockMargin)
		}
		if today { // asked for each few seconds
			count.Written = from.Begin
			s.Empty = from.Begin.Format(time.DateOnly)
		}
		err = withProgress(cmd, func(ctx context.Context) error {
			return src.Costs(ctx, count, func(r reports.Row, agent string) { s.Add(&r, agent) })
		})
		src.sayLeftOut(cmd)
		out := cmd.OutOrStdout()
		switch {
		case err != nil:
			return err
		case svg != "":
			return os.WriteFile(svg, s.SVG(), 0o666)
		case asJSON:
			return s.WriteJSON(out)
		}
		width := terminalWidth(out)
		switch {
		case width < 0:
			width = reports.NoWidth
		case width == 0:
			width = reports.TableWidth
		}
		_, err = out.Write(s.Table(width, blocksIn(os.Getenv), since == "" && isTerminal(out)))
		return err
	})
	flags := cmd.Flags()
	flags.StringVar(&by, "by", reports.ByDay, "a line for each `WHAT`, or two (model,cwd): "+strings.Join(reports.Keys, ", "))
	flags.StringVar(&since, "since", "", "count from `WHEN` on: 2026-01-31, 2026-01, today, monday, 30d, 4w")
	flags.StringVar(&until, "until", "", "count until `WHEN`, the day, week or month included")
	flags.BoolVar(&today, "today", false, "only this day; with --json one line, for a status bar")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object a line, with the keys of usage.jsonl")
	flags.StringVar(&svg, "svg", "", "draw the bars into `FILE`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		var err error
		s, err = reports.NewStats(by)
		switch {
		case err != nil:
			return refuse(exitUsage, "stats: %s", err)
		case today && since+until != "":
			return refuse(exitUsage, "stats: --today, or --since and --until, not both")
		case asJSON && svg != "":
			return refuse(exitUsage, "stats: --json or --svg, not both")
		}
		return nil
	}
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(reports.Keys, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
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
		if _, err := os.Stat(args[0]); err == nil {
			return nil
		}
	}
	return noArgs(cmd, args)
}
