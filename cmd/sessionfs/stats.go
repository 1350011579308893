package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/sessioncore"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
)

// statsCommand is sessionfs stats.
func statsCommand() *cobra.Command {
	var by, since, until, svg string
	var today, asJSON bool
	cmd := onSource(words, &cobra.Command{
		Use:        "stats [--by WHAT] [--since WHEN] [--until WHEN] [--json]",
		Short:      "Tell what all sessions cost, with bars",
		SuggestFor: []string{"usage", "cost", "costs"},
		Long: "Add up tokens and dollars of all sessions. Copies in forks count once, and subagents with the session " +
			"that called them. Days are local. + stands behind a sum of which a part has no cost. Of tools the calls " +
			"are counted. Where a client recorded no cost, list prices give one; -o prices=FILE has others, -o " +
			"prices=none leaves them out.",
		Example: "  sessionfs stats --by model,cwd --since 30d\n  sessionfs stats --by week --svg weeks.svg",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, src *source, _ []string) error {
		if today {
			since, until = "today", "today"
		}
		from, err := spanOf("since", since)
		if err != nil {
			return err
		}
		to, err := spanOf("until", until)
		if err != nil {
			return err
		}
		s := &stats{by: strings.Split(by, ","), prices: src.Prices(), labels: map[string]string{}, latest: map[string]moment{}}
		count := fs.Count{Tools: s.ofTools(), Hours: slices.Contains(s.by, byHour), From: from.Begin, Until: to.End}
		if today {
			count.Written = from.Begin // an older file has nothing of today
			s.empty = from.Begin.Format(time.DateOnly)
		}
		s.recent = since == "" && isTerminal(cmd.OutOrStdout())
		err = withProgress(cmd, func(ctx context.Context) error {
			return src.Costs(ctx, count, func(r reports.Row, agent string) { s.add(&r, agent) })
		})
		if err != nil {
			return err
		}
		return s.print(cmd, asJSON, svg)
	})
	flags := cmd.Flags()
	flags.StringVar(&by, "by", byDay, "a line for each `WHAT`, or two (model,cwd): "+strings.Join(keyNames, ", "))
	flags.StringVar(&since, "since", "", "count from `WHEN` on: 2026-01-31, 2026-01, today, monday, 30d, 4w")
	flags.StringVar(&until, "until", "", "count until `WHEN`, the day, week or month included")
	flags.BoolVar(&today, "today", false, "only this day; with --json one line, for a status bar")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object a line, with the keys of usage.jsonl")
	flags.StringVar(&svg, "svg", "", "draw the bars into `FILE`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		bys := strings.Split(by, ",")
		isNone := func(by string) bool { return keys[by] == nil }
		switch {
		case len(bys) > 2 || slices.ContainsFunc(bys, isNone) || len(bys) == 2 && bys[0] == bys[1]:
			return refuse(exitUsage, "stats: --by is one of %s, or two of them, not %q", strings.Join(keyNames, ", "), by)
		case slices.Contains(bys, byTool) && slices.Contains(bys, byModel):
			return refuse(exitUsage, "stats: --by %s: calls of tools are not counted by model", by)
		case today && since+until != "":
			return refuse(exitUsage, "stats: --today, or --since and --until, not both")
		case asJSON && svg != "":
			return refuse(exitUsage, "stats: --json or --svg, not both")
		}
		return nil
	}
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(keyNames, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

const (
	byHour    = "hour"
	byDay     = "day"
	byModel   = "model"
	byCWD     = "cwd"
	bySession = "session"
	byTool    = "tool"
)

// keyNames are the names of keys in the order of the help.
var keyNames = []string{byHour, byDay, "week", "month", byModel, byCWD, bySession, "agent", "who", byTool}

// keys are the keys by which costs can be added up.
var keys = map[string]func(r *reports.Row, agent string) string{
	byHour: func(r *reports.Row, _ string) string { return r.Day.Format("2006-01-02 15:04") },
	byDay:  func(r *reports.Row, _ string) string { return r.Day.Format(time.DateOnly) },
	"week": func(r *reports.Row, _ string) string {
		year, week := r.Day.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	},
	"month":   func(r *reports.Row, _ string) string { return r.Day.Format("2006-01") },
	byModel:   func(r *reports.Row, _ string) string { return r.Model },
	byCWD:     func(r *reports.Row, _ string) string { return cmp.Or(r.Session.CWD, "-") },
	bySession: func(r *reports.Row, _ string) string { return r.Session.Path() },
	"agent":   func(_ *reports.Row, agent string) string { return agent },
	// where several people share a database
	"who":  func(r *reports.Row, _ string) string { return cmp.Or(r.Session.Who(), "-") },
	byTool: func(r *reports.Row, _ string) string { return r.Model },
}

// isTime reports whether a key is a span of time, whose names are in its order.
func isTime(by string) bool { return slices.Contains([]string{byHour, byDay, "week", "month"}, by) }

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

// stats are sums of costs by one or two of the keys, and that of all.
type stats struct {
	by []string
	// groups are the lines, named by their keys with separator between them; firsts are the sums by
	// the first key.
	groups, firsts, total reports.Groups
	labels                map[string]string // the names for a person of groups that have others
	latest                map[string]moment // by first key
	recent                bool              // only the last lines of days, hours and sessions are shown
	empty                 string            // the day that JSON has where there is nothing, "" for none
	prices                string            // the source of the list prices
	unpriced              []string          // models with an answer without a cost
}

// separator stands between the keys in the name of a group.
const separator = "\x00"

// moment is when something was last in use: the span, and for sessions in the same span when they
// began.
type moment struct {
	span  time.Time
	began int64
}

func (m moment) compare(other moment) int {
	return cmp.Or(m.span.Compare(other.span), cmp.Compare(m.began, other.began))
}

// ofTools reports whether calls of tools are counted.
func (s *stats) ofTools() bool { return slices.Contains(s.by, byTool) }

// add adds a row to its group.
func (s *stats) add(r *reports.Row, agent string) {
	var names []string
	for _, by := range s.by {
		name := keys[by](r, agent)
		if names = append(names, name); by == bySession {
			s.labels[name] = r.Session.DisplayName()
		}
	}
	s.groups.Add(strings.Join(names, separator), r)
	s.firsts.Add(names[0], r)
	s.total.Add(totalName, r)
	began, _ := r.Session.Created()
	if now := (moment{r.Day, began}); now.compare(s.latest[names[0]]) > 0 {
		s.latest[names[0]] = now
	}
	if r.Sum.Unpriced > 0 && strings.Contains(r.Model, "/") && !slices.Contains(s.unpriced, r.Model) {
		s.unpriced = append(s.unpriced, r.Model)
	}
}

// labelsOf returns the keys of a group for a person.
func (s *stats) labelsOf(g *reports.Group) []string {
	names := strings.Split(g.Name, separator)
	for i, name := range names {
		names[i] = visible(cmp.Or(s.labels[name], name))
	}
	return names
}

// maxNamed is how many models without a price are named.
const maxNamed = 10

// notes returns the lines below the sums: the source of the prices, and the models without a price.
func (s *stats) notes() (notes []string) {
	if all := s.total.All(); len(all) > 0 && all[0].Listed > 0 {
		notes = append(notes, fmt.Sprintf("list prices of %s, not a bill: subscriptions cost otherwise",
			visible(s.prices)))
	}
	if names := slices.Sorted(slices.Values(s.unpriced)); len(names) > 0 && s.prices != "" {
		more := ""
		if len(names) > maxNamed {
			names, more = names[:maxNamed], fmt.Sprintf(" and %d more", len(names)-maxNamed)
		}
		notes = append(notes, fmt.Sprintf("no price is known for answers of %s%s; add one with -o prices=FILE",
			visible(strings.Join(names, ", ")), more))
	}
	return notes
}

const totalName = "total"

// list returns the lines: spans of time in their order, others by their measure.
func (s *stats) list() []*reports.Group {
	value, firsts := s.measure().of, map[string]*reports.Group{}
	for _, g := range s.firsts.All() {
		firsts[g.Name] = g
	}
	order := func(by string, a, b *reports.Group) int {
		if isTime(by) {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(value(b), value(a)), cmp.Compare(b.TotalTokens, a.TotalTokens), cmp.Compare(a.Name, b.Name))
	}
	return slices.SortedFunc(slices.Values(s.groups.All()), func(a, b *reports.Group) int {
		first, _, _ := strings.Cut(a.Name, separator)
		other, _, _ := strings.Cut(b.Name, separator)
		if first != other {
			return order(s.by[0], firsts[first], firsts[other])
		}
		return order(s.by[len(s.by)-1], a, b)
	})
}

// lastShown is how many days, hours or sessions a terminal shows.
const lastShown = 30

// last returns the lines of the last days, hours or sessions that have any, and a note if these are
// not all.
func (s *stats) last(groups []*reports.Group) (shown []*reports.Group, note string) {
	if !s.recent || len(s.latest) <= lastShown || !slices.Contains([]string{byDay, byHour, bySession}, s.by[0]) {
		return groups, ""
	}
	names := slices.SortedFunc(maps.Keys(s.latest), func(a, b string) int { return s.latest[b].compare(s.latest[a]) })[:lastShown]
	shown = slices.DeleteFunc(groups, func(g *reports.Group) bool {
		first, _, _ := strings.Cut(g.Name, separator)
		return !slices.Contains(names, first)
	})
	return shown, fmt.Sprintf("the last %d of %d %ss; --since shows more, and total is that of all\n",
		lastShown, len(s.latest), s.by[0])
}

// measure is the quantity that bars show.
type measure struct {
	name string
	of   func(*reports.Group) float64
}

// measure returns the quantity of the bars: dollars, or tokens where no cost is known.
func (s *stats) measure() measure {
	known := func(g *reports.Group) bool { return g.Cost.Total > 0 }
	switch {
	case s.ofTools():
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
		if len(groups) == 0 && s.empty != "" && s.by[0] == byDay && len(s.by) == 1 {
			groups = []*reports.Group{{Name: s.empty}}
		}
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
	groups, note := s.last(groups)
	_, err := cmd.OutOrStdout().Write(append(s.table(groups, width, blocksIn(os.Getenv)), note...))
	return err
}

// json returns a line for each group: its name, the sum, and the time zone of a span of time.
func (s *stats) json(groups []*reports.Group) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	zone := ""
	if slices.ContainsFunc(s.by, isTime) {
		zone = sessioncore.ZoneName()
	}
	for _, g := range groups {
		var sum any = struct {
			Sessions int `json:"sessions"`
			*reports.Sum
			Zone string `json:"tz,omitempty"`
		}{g.Sessions(), &g.Sum, zone}
		if s.ofTools() {
			sum = map[string]int{"sessions": g.Sessions(), "calls": g.AssistantMessages}
		}
		names := map[string]string{}
		for i, name := range strings.Split(g.Name, separator) {
			names[s.by[i]] = name
		}
		if err := enc.Encode(names); err != nil {
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

// blocksIn returns the characters of bars: eighths of a block where the locale has them, else #.
func blocksIn(getenv func(string) string) []string {
	locale := cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG"))
	if strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8") {
		return []string{"█", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}
	}
	return []string{"#"}
}

const (
	// tableWidth is the width of a table where no terminal tells its own, and maxBar that of its
	// longest bar, in characters.
	tableWidth = 80
	maxBar     = 40
	// minBar is for how many characters of a bar names are cut.
	minBar = 10
)

// cells returns the columns of a line behind the name, as text.
func (s *stats) cells(g *reports.Group) []string {
	cells := []string{fmt.Sprint(g.Sessions()), fmt.Sprint(g.AssistantMessages)}
	if !s.ofTools() {
		cells = append(cells, short(float64(g.TotalTokens)), dollars(&g.Sum))
	}
	return cells
}

func (s *stats) titles() []string {
	if s.ofTools() {
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

// table returns the lines with bars, which are made of blocks: a whole one, and parts of one by
// their length.
func (s *stats) table(groups []*reports.Group, width int, blocks []string) []byte {
	titles, named := s.titles(), len(s.by)
	rows := [][]string{append(slices.Clone(s.by), titles...)}
	for _, g := range groups {
		rows = append(rows, append(s.labelsOf(g), s.cells(g)...))
	}
	for _, g := range s.total.All() {
		rows = append(rows, append(append([]string{totalName}, make([]string, named-1)...), s.cells(g)...))
	}
	room := width - 2*(len(titles)+named-1)
	for i := range titles {
		room -= widest(rows, named+i)
	}
	free, rest := room, widest(rows, 1) // what the other key needs
	if named == 1 {
		free, rest = room-minBar, 0
	}
	for i := range named {
		for _, row := range rows {
			row[i] = s.cut(i, row[i], max(free/(named-i), free-rest, minBar))
		}
		free, rest, room = free-widest(rows, i), 0, room-widest(rows, i)
	}
	bar := min(maxBar, room-2)
	share := s.shares(groups)
	var out bytes.Buffer
	for i, row := range rows {
		for k, cell := range row {
			switch {
			case k == 0:
				fmt.Fprintf(&out, "%-*s", widest(rows, k), cell)
			case k < named:
				fmt.Fprintf(&out, "  %-*s", widest(rows, k), cell)
			default:
				fmt.Fprintf(&out, "  %*s", widest(rows, k), cell)
			}
		}
		if i > 0 && i <= len(groups) {
			if drawn := drawBar(share[i-1]*float64(max(bar, 0)), blocks); drawn != "" {
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

// cut shortens a key: a path at its beginning, as its end tells more, any other one at its end.
func (s *stats) cut(key int, name string, width int) string {
	switch r := []rune(name); {
	case len(r) <= width:
		return name
	case s.by[key] == byCWD:
		return "…" + string(r[len(r)-width+1:])
	default:
		return string(r[:width-1]) + "…"
	}
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
	share, what := s.shares(groups), s.measure().name+" by "+strings.Join(s.by, ", ")
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" role="img" font-family="sans-serif" font-size="13">`+"\n",
		width, line*(len(groups)+len(s.notes())+2))
	fmt.Fprintf(&out, "<title>%s</title>\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", what)
	fmt.Fprintf(&out, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", left, line-6, what)
	for i, g := range groups {
		y := (i + 1) * line
		length := share[i] * bar
		cells, names := s.cells(g), s.labelsOf(g)
		for i := range names {
			names[i] = s.cut(i, names[i], 40/len(names))
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+15, html.EscapeString(strings.Join(names, ", ")))
		fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="#4a7ab5"/>`, left, y+2, length, line-4)
		fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s</text>`+"\n", left+length+6, y+15, cells[len(cells)-1])
	}
	for i, note := range s.notes() {
		fmt.Fprintf(&out, `<text x="%d" y="%d">%s</text>`+"\n", 8, (len(groups)+i+2)*line, html.EscapeString(note))
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}
