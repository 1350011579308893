package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/costs"
)

// statsCommand is sessionfs stats.
func statsCommand() *cobra.Command {
	var by, since, svg string
	var asJSON bool
	cmd := onSource(words, &cobra.Command{
		Use:   "stats [--by WHAT] [--since WHEN] [--json | --svg FILE]",
		Short: "Tell what all sessions cost, with bars",
		Long: "Add up tokens and dollars of all sessions. Copies in forks count once, and subagents with the session that called " +
			"them. Days are those of UTC. + stands behind a sum of which a part has no cost. Of tools the calls are counted. " +
			"Where a client recorded no cost, list prices give one; -o prices=FILE has others, -o prices=none leaves them out.",
		Example: "  sessionfs stats\n  sessionfs stats --by model --since 30d\n  sessionfs stats --by week --svg weeks.svg",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, src *source, _ []string) error {
		from, err := sinceWhen(since, time.Now())
		if err != nil {
			return err
		}
		s := &stats{by: by, prices: src.Prices(), labels: map[string]string{}}
		err = src.Costs(cmd.Context(), by == byTool, func(r costs.Row, agent string) {
			if !r.Day.Before(from) {
				s.add(&r, agent)
			}
		})
		if err != nil {
			return err
		}
		return s.print(cmd, asJSON, svg)
	})
	flags := cmd.Flags()
	flags.StringVar(&by, "by", "day", "a line for each `WHAT`: "+strings.Join(whats, ", "))
	flags.StringVar(&since, "since", "", "count from `WHEN` on: a date, or a number of days or weeks ago (30d, 4w)")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object a line, with the keys of usage.jsonl")
	flags.StringVar(&svg, "svg", "", "draw the bars into `FILE`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case keys[by] == nil:
			return refuse(exitUsage, "stats: --by is one of %s, not %q", strings.Join(whats, ", "), by)
		case asJSON && svg != "":
			return refuse(exitUsage, "stats: --json or --svg, not both")
		}
		return nil
	}
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(whats, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

const (
	byTool    = "tool"
	bySession = "session"
)

// whats are the keys in the order in which they are told.
var whats = []string{"day", "week", "model", "cwd", bySession, "agent", "who", byTool}

// keys are what costs can be added up by.
var keys = map[string]func(r *costs.Row, agent string) string{
	"day": func(r *costs.Row, _ string) string { return r.Day.Format(time.DateOnly) },
	"week": func(r *costs.Row, _ string) string {
		year, week := r.Day.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	},
	"model":   func(r *costs.Row, _ string) string { return r.Model },
	"cwd":     func(r *costs.Row, _ string) string { return cmp.Or(r.Session.CWD, "-") },
	bySession: func(r *costs.Row, _ string) string { return r.Session.Path() },
	"agent":   func(_ *costs.Row, agent string) string { return agent },
	"who":     func(r *costs.Row, _ string) string { return cmp.Or(r.Session.Who(), "-") }, // where several people share a database
	byTool:    func(r *costs.Row, _ string) string { return r.Model },
}

// sinceWhen returns the first day that counts.
func sinceWhen(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	days := map[byte]int{'d': 1, 'w': 7}[text[len(text)-1]]
	if n, err := strconv.ParseUint(text[:len(text)-1], 10, 16); err == nil && days > 0 {
		return now.UTC().AddDate(0, 0, -int(n)*days).Truncate(24 * time.Hour), nil
	}
	return time.Time{}, refuse(exitUsage, "stats: --since is a date (2026-01-31) or a number of days or weeks (30d, 4w), not %q", text)
}

// stats are sums of costs by one of the keys, and that of all.
type stats struct {
	by            string
	groups, total costs.Groups
	labels        map[string]string // the names for a person of groups that have others
	prices        string            // the source of the list prices
	unpriced      []string          // models with an answer without a cost
}

// add adds a row to its group.
func (s *stats) add(r *costs.Row, agent string) {
	key := keys[s.by](r, agent)
	s.groups.Add(key, r)
	s.total.Add(totalName, r)
	if s.by == bySession {
		s.labels[key] = r.Session.DisplayName()
	}
	if r.Sum.Unpriced > 0 && strings.Contains(r.Model, "/") && !slices.Contains(s.unpriced, r.Model) {
		s.unpriced = append(s.unpriced, r.Model)
	}
}

// label returns the name of a group for a person.
func (s *stats) label(g *costs.Group) string { return visible(cmp.Or(s.labels[g.Name], g.Name)) }

// maxNamed is how many models without a price are named.
const maxNamed = 10

// notes returns the lines below the sums: the source of the prices, and the models without a price.
func (s *stats) notes() (notes []string) {
	if all := s.total.All(); len(all) > 0 && all[0].Listed > 0 {
		notes = append(notes, fmt.Sprintf("list prices of %s, not a bill: subscriptions cost otherwise", visible(s.prices)))
	}
	if names := slices.Sorted(slices.Values(s.unpriced)); len(names) > 0 && s.prices != "" {
		more := ""
		if len(names) > maxNamed {
			names, more = names[:maxNamed], fmt.Sprintf(" and %d more", len(names)-maxNamed)
		}
		notes = append(notes, fmt.Sprintf("no price is known for answers of %s%s; add one with -o prices=FILE", visible(strings.Join(names, ", ")), more))
	}
	return notes
}

const totalName = "total"

// list returns the lines: days and weeks in their order, what else there is by cost, or by what is known instead.
func (s *stats) list() []*costs.Group {
	value := s.measure().of
	return slices.SortedFunc(slices.Values(s.groups.All()), func(a, b *costs.Group) int {
		if s.by == "day" || s.by == "week" {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(value(b), value(a)), cmp.Compare(b.TotalTokens, a.TotalTokens), cmp.Compare(a.Name, b.Name))
	})
}

// measure is what bars show.
type measure struct {
	name string
	of   func(*costs.Group) float64
}

// measure returns what the bars show: dollars, or tokens where nobody knows a cost.
func (s *stats) measure() measure {
	known := func(g *costs.Group) bool { return g.Cost.Total > 0 }
	switch {
	case s.by == byTool:
		return measure{"calls", func(g *costs.Group) float64 { return float64(g.AssistantMessages) }}
	case slices.ContainsFunc(s.groups.All(), known):
		return measure{"cost", func(g *costs.Group) float64 { return float64(g.Cost.Total) }}
	}
	return measure{"tokens", func(g *costs.Group) float64 { return float64(g.TotalTokens) }}
}

// print prints the sums, or draws them into a file.
func (s *stats) print(cmd *cobra.Command, asJSON bool, svg string) error {
	groups := s.list()
	switch {
	case svg != "":
		return os.WriteFile(svg, s.svg(groups), 0o666)
	case asJSON:
		text, err := s.json(groups)
		if err == nil {
			_, err = cmd.OutOrStdout().Write(text)
		}
		return err
	case len(groups) == 0:
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "no session has a cost there")
		return err
	}
	width := terminalWidth(cmd.OutOrStdout())
	if width <= 0 {
		width = tableWidth
	}
	_, err := cmd.OutOrStdout().Write(s.table(groups, width, blocksIn(os.Getenv)))
	return err
}

// json returns a line for each group.
func (s *stats) json(groups []*costs.Group) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, g := range groups {
		fmt.Fprintf(&out, `{%q:`, s.by)
		if err := enc.Encode(g.Name); err != nil {
			return nil, err
		}
		out.Truncate(out.Len() - len("\n"))
		var rest any = struct {
			Sessions int `json:"sessions"`
			*costs.Sum
		}{g.Sessions(), &g.Sum}
		if s.by == byTool {
			rest = map[string]int{"sessions": g.Sessions(), "calls": g.AssistantMessages}
		}
		at := out.Len()
		if err := enc.Encode(rest); err != nil {
			return nil, err
		}
		out.Bytes()[at] = ','
	}
	return out.Bytes(), nil
}

// blocksIn returns what bars are drawn of: eighths of a block where the locale has them, else #.
func blocksIn(getenv func(string) string) []string {
	locale := cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG"))
	if strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8") {
		return []string{"█", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}
	}
	return []string{"#"}
}
