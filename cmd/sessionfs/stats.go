package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
)

// statsCommand is sessionfs stats.
func statsCommand() *cobra.Command {
	var by, since, until, svg string
	var asJSON bool
	cmd := onSource(words, &cobra.Command{
		Use:        "stats [--by WHAT] [--since WHEN] [--until WHEN] [--json]",
		Short:      "Tell what all sessions cost, with bars",
		SuggestFor: []string{"usage", "cost", "costs"},
		Long: "Add up tokens and dollars of all sessions. Copies in forks count once, and subagents with the session that called " +
			"them. Days are local. + stands behind a sum of which a part has no cost. Of tools the calls are counted. " +
			"Where a client recorded no cost, list prices give one; -o prices=FILE has others, -o prices=none leaves them out.",
		Example: "  sessionfs stats\n  sessionfs stats --by model --since 30d\n  sessionfs stats --by week --svg weeks.svg",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, src *source, _ []string) error {
		from, err := spanOf("since", since)
		if err != nil {
			return err
		}
		to, err := spanOf("until", until)
		if err != nil {
			return err
		}
		s := &stats{by: by, prices: src.Prices(), labels: map[string]string{}}
		err = withProgress(cmd, func(ctx context.Context) error {
			return src.Costs(ctx, by == byTool, from.Begin, to.End, func(r reports.Row, agent string) { s.add(&r, agent) })
		})
		if err != nil {
			return err
		}
		return s.print(cmd, asJSON, svg)
	})
	flags := cmd.Flags()
	flags.StringVar(&by, "by", "day", "a line for each `WHAT`: "+strings.Join(whats, ", "))
	flags.StringVar(&since, "since", "", "count from `WHEN` on: 2026-01-31, 2026-01, today, monday, 30d, 4w")
	flags.StringVar(&until, "until", "", "count until `WHEN`, the day, week or month included")
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
var keys = map[string]func(r *reports.Row, agent string) string{
	"day": func(r *reports.Row, _ string) string { return r.Day.Format(time.DateOnly) },
	"week": func(r *reports.Row, _ string) string {
		year, week := r.Day.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	},
	"model":   func(r *reports.Row, _ string) string { return r.Model },
	"cwd":     func(r *reports.Row, _ string) string { return cmp.Or(r.Session.CWD, "-") },
	bySession: func(r *reports.Row, _ string) string { return r.Session.Path() },
	"agent":   func(_ *reports.Row, agent string) string { return agent },
	"who":     func(r *reports.Row, _ string) string { return cmp.Or(r.Session.Who(), "-") }, // where several people share a database
	byTool:    func(r *reports.Row, _ string) string { return r.Model },
}

// spanOf returns the span of time that an option names, the zero Span for an empty one.
func spanOf(option, text string) (search.Span, error) {
	if text == "" {
		return search.Span{}, nil
	}
	s, err := search.ParseSpan(text, time.Now())
	if err != nil {
		err = refuse(exitUsage, "stats: --%s is %v", option, err)
	}
	return s, err
}

// stats are sums of costs by one of the keys, and that of all.
type stats struct {
	by            string
	groups, total reports.Groups
	labels        map[string]string // the names for a person of groups that have others
	prices        string            // the source of the list prices
	unpriced      []string          // models with an answer without a cost
}

// add adds a row to its group.
func (s *stats) add(r *reports.Row, agent string) {
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
func (s *stats) label(g *reports.Group) string { return visible(cmp.Or(s.labels[g.Name], g.Name)) }

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
func (s *stats) list() []*reports.Group {
	value := s.measure().of
	return slices.SortedFunc(slices.Values(s.groups.All()), func(a, b *reports.Group) int {
		if s.by == "day" || s.by == "week" {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(value(b), value(a)), cmp.Compare(b.TotalTokens, a.TotalTokens), cmp.Compare(a.Name, b.Name))
	})
}

// measure is what bars show.
type measure struct {
	name string
	of   func(*reports.Group) float64
}

// measure returns what the bars show: dollars, or tokens where nobody knows a cost.
func (s *stats) measure() measure {
	known := func(g *reports.Group) bool { return g.Cost.Total > 0 }
	switch {
	case s.by == byTool:
		return measure{"calls", func(g *reports.Group) float64 { return float64(g.AssistantMessages) }}
	case slices.ContainsFunc(s.groups.All(), known):
		return measure{"cost", func(g *reports.Group) float64 { return float64(g.Cost.Total) }}
	}
	return measure{"tokens", func(g *reports.Group) float64 { return float64(g.TotalTokens) }}
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

// json returns a line for each group: its name, the sum, and the time zone of a day or week.
func (s *stats) json(groups []*reports.Group) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	zone := ""
	if s.by == "day" || s.by == "week" {
		zone = sessioncore.ZoneName()
	}
	for _, g := range groups {
		var sum any = struct {
			Sessions int `json:"sessions"`
			*reports.Sum
			Zone string `json:"tz,omitempty"`
		}{g.Sessions(), &g.Sum, zone}
		if s.by == byTool {
			sum = map[string]int{"sessions": g.Sessions(), "calls": g.AssistantMessages}
		}
		if err := enc.Encode(map[string]string{s.by: g.Name}); err != nil {
			return nil, err
		}
		out.Truncate(out.Len() - len("}\n"))
		at := out.Len()
		if err := enc.Encode(sum); err != nil {
			return nil, err
		}
		out.Bytes()[at] = ',' // one object
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

const (
	// tableWidth is the width of a table where no terminal tells its own, and maxBar that of its longest bar, in characters.
	tableWidth = 80
	maxBar     = 40
	// minBar is for how many characters of a bar names are cut.
	minBar = 10
)

// cells returns the columns of a line behind the name, as text.
func (s *stats) cells(g *reports.Group) []string {
	cells := []string{fmt.Sprint(g.Sessions()), fmt.Sprint(g.AssistantMessages)}
	if s.by != byTool {
		cells = append(cells, short(float64(g.TotalTokens)), dollars(&g.Sum))
	}
	return cells
}

func (s *stats) titles() []string {
	if s.by == byTool {
		return []string{"sessions", "calls"}
	}
	return []string{"sessions", "answers", "tokens", "cost"}
}

// dollars returns a cost: - where nobody knows any, with a + where not all is known.
func dollars(sum *reports.Sum) string {
	switch {
	case sum.Cost.IsZero():
		return "-"
	case sum.Unpriced > 0:
		return fmt.Sprintf("$%.2f+", float64(sum.Cost.Total))
	}
	return fmt.Sprintf("$%.2f", float64(sum.Cost.Total))
}

// short returns a number in at most five characters.
func short(n float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if n < 999.5 || unit == "G" {
			if unit != "" && n < 9.95 {
				return fmt.Sprintf("%.1f%s", n, unit)
			}
			return fmt.Sprintf("%.0f%s", n, unit)
		}
		n /= 1000
	}
	return ""
}

// table returns the lines with bars, which are made of blocks: a whole one, and parts of one by their length.
func (s *stats) table(groups []*reports.Group, width int, blocks []string) []byte {
	titles := s.titles()
	rows := [][]string{append([]string{s.by}, titles...)}
	for _, g := range slices.Concat(groups, s.total.All()) {
		rows = append(rows, append([]string{s.label(g)}, s.cells(g)...))
	}
	room := width - minBar - 2*len(titles)
	for i := range titles {
		room -= widest(rows, i+1)
	}
	for _, row := range rows {
		row[0] = s.cut(row[0], max(room, minBar))
	}
	bar := min(maxBar, minBar+max(room, minBar)-widest(rows, 0)-2)
	share := s.shares(groups)
	var out bytes.Buffer
	for i, row := range rows {
		fmt.Fprintf(&out, "%-*s", widest(rows, 0), row[0])
		for k, cell := range row[1:] {
			fmt.Fprintf(&out, "  %*s", widest(rows, k+1), cell)
		}
		if i > 0 && i <= len(groups) {
			if drawn := drawBar(share[i-1]*float64(bar), blocks); drawn != "" {
				out.WriteString("  " + drawn)
			}
		}
		out.WriteByte('\n')
	}
	for _, note := range s.notes() {
		out.WriteString(note + "\n")
	}
	return out.Bytes()
}

// shares returns how long the bars are: that of the largest group is 1.
func (s *stats) shares(groups []*reports.Group) []float64 {
	value, most := s.measure().of, 0.0
	for _, g := range groups {
		most = max(most, value(g))
	}
	shares := make([]float64, len(groups))
	for i, g := range groups {
		if most > 0 {
			shares[i] = value(g) / most
		}
	}
	return shares
}

func widest(rows [][]string, column int) (width int) {
	for _, row := range rows {
		width = max(width, utf8.RuneCountInString(row[column]))
	}
	return width
}

// cut shortens a name: the title of a session at its end, any other one at its beginning.
func (s *stats) cut(name string, width int) string {
	if r := []rune(name); s.by == bySession && len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return cutLeft(name, width)
}

// cutLeft shortens a name at its beginning, as the ends of paths and models tell more.
func cutLeft(name string, width int) string {
	if r := []rune(name); len(r) > width {
		return "…" + string(r[len(r)-width+1:])
	}
	return name
}

func drawBar(length float64, blocks []string) string {
	parts := int(length*float64(len(blocks)) + 0.5)
	bar := strings.Repeat(blocks[0], parts/len(blocks))
	if part := parts % len(blocks); part > 0 {
		bar += blocks[part]
	}
	return bar
}

// svg returns the bars as a picture that loads nothing, a line for each group.
func (s *stats) svg(groups []*reports.Group) []byte {
	const line, left, bar, width = 22, 320, 360, 800
	share, what := s.shares(groups), s.measure().name
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" role="img" font-family="sans-serif" font-size="13">`+"\n",
		width, line*(len(groups)+len(s.notes())+2))
	fmt.Fprintf(&out, "<title>%s by %s</title>\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", what, s.by)
	fmt.Fprintf(&out, `<text x="%d" y="%d" font-weight="bold">%s by %s</text>`+"\n", left, line-6, what, s.by)
	for i, g := range groups {
		y := (i + 1) * line
		length := share[i] * bar
		cells := s.cells(g)
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+15, html.EscapeString(s.cut(s.label(g), 40)))
		fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="#4a7ab5"/>`, left, y+2, length, line-4)
		fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s</text>`+"\n", left+length+6, y+15, cells[len(cells)-1])
	}
	for i, note := range s.notes() {
		fmt.Fprintf(&out, `<text x="%d" y="%d">%s</text>`+"\n", 8, (len(groups)+i+2)*line, html.EscapeString(note))
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}
