package report

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
)

// Stats are sums of costs by one or two keys, and the total, for people.
type Stats struct {
	// Prices are the list prices that costs are made with.
	Prices Prices
	// Empty is the day that WriteJSON writes where there is nothing, "" for none.
	Empty string

	by       []string
	lines    map[[2]string]*group // by the names of their keys
	firsts   map[string]*group    // by the name of the first key
	total    group
	unpriced map[string]bool // models with an answer without a cost
}

// group is the sum of some rows.
type group struct {
	Sum
	names, labels []string // of its keys, and for a person
	id, title     string   // of its session, if that is a key; the title is whole
	first         *group   // of those with its first key
	sessions      map[*listing.Info]bool
	latest        moment
}

// moment is when something was last in use: the span, and for sessions in the same span when they
// began.
type moment struct {
	span  time.Time
	began int64
}

func (m moment) compare(other moment) int {
	return cmp.Or(m.span.Compare(other.span), cmp.Compare(m.began, other.began))
}

const (
	byHour    = "hour"
	byModel   = "model"
	byCWD     = "cwd"
	bySession = "session"
	byTool    = "tool"

	// ByDay is the default key.
	ByDay = "day"
)

// Keys are the names of the keys that costs can be added up by, in the order of the help.
var Keys = []string{byHour, ByDay, "week", "month", byModel, byCWD, bySession, "agent", "who", byTool}

// keys return the name of a row's group.
var keys = map[string]func(r *Row, agent string) string{
	byHour: func(r *Row, _ string) string { return r.Day.Format("2006-01-02 15:04") },
	ByDay:  func(r *Row, _ string) string { return r.Day.Format(time.DateOnly) },
	"week": func(r *Row, _ string) string {
		year, week := r.Day.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	},
	"month":   func(r *Row, _ string) string { return r.Day.Format("2006-01") },
	byModel:   func(r *Row, _ string) string { return r.Model },
	byCWD:     func(r *Row, _ string) string { return names.OrDash(r.Session.CWD) },
	bySession: func(r *Row, _ string) string { return r.Session.Path() },
	"agent":   func(_ *Row, agent string) string { return agent },
	// where several people share a database
	"who":  func(r *Row, _ string) string { return names.OrDash(r.Session.Who()) },
	byTool: func(r *Row, _ string) string { return r.Model },
}

// isTime reports whether a key is a span of time. The names of its groups sort by time.
func isTime(by string) bool { return slices.Contains([]string{byHour, ByDay, "week", "month"}, by) }

// NewStats returns empty sums by one of Keys, or by two with a comma between them. Its error words a
// wrong option --by.
func NewStats(by string) (*Stats, error) {
	bys := strings.Split(by, ",")
	if !areKeys(bys) {
		return nil, fmt.Errorf("--by is one of %s, or two of them, not %q", strings.Join(Keys, ", "), by)
	}
	if slices.Contains(bys, byTool) && slices.Contains(bys, byModel) {
		return nil, fmt.Errorf("--by %s: calls of tools are not counted by model", by)
	}
	return &Stats{
		by:       bys,
		lines:    map[[2]string]*group{},
		firsts:   map[string]*group{},
		unpriced: map[string]bool{},
	}, nil
}

// areKeys reports whether names are one of Keys or two different ones.
func areKeys(bys []string) bool {
	for _, by := range bys {
		if keys[by] == nil {
			return false
		}
	}
	switch len(bys) {
	case 1:
		return true
	case 2:
		return bys[0] != bys[1]
	}
	return false
}

// OfTools reports whether calls of tools are counted, in rows of NewCalls.
func (s *Stats) OfTools() bool { return slices.Contains(s.by, byTool) }

// ByHours reports whether rows of hours are needed.
func (s *Stats) ByHours() bool { return slices.Contains(s.by, byHour) }

// OfSessions reports whether the sums are of sessions, which are shown with their titles.
func (s *Stats) OfSessions() bool { return slices.Contains(s.by, bySession) }

// Add adds a row of the sessions of an agent.
func (s *Stats) Add(r *Row, agent string) {
	var key [2]string
	for i, by := range s.by {
		nameOf := keys[by]
		key[i] = nameOf(r, agent)
	}
	first := key[0]
	if s.firsts[first] == nil {
		s.firsts[first] = &group{}
	}
	line := s.lines[key]
	if line == nil {
		line = s.newGroup(key, r)
		s.lines[key] = line
	}
	line.add(r)
	line.first.add(r)
	s.total.add(r)
	if r.Sum.Unpriced > 0 && strings.Contains(r.Model, "/") {
		s.unpriced[r.Model] = true
	}
}

// newGroup returns the group of a row, without its sums.
func (s *Stats) newGroup(key [2]string, r *Row) *group {
	g := &group{names: key[:len(s.by)], first: s.firsts[key[0]]}
	for i, label := range g.names {
		if s.by[i] == bySession {
			name := r.Session.DisplayName()
			if name != "" {
				label = name
			}
			id := r.Session.ID
			if id == "" {
				id = path.Base(r.Session.Path())
			}
			g.id = names.Visible(id)
			g.title = names.Visible(r.Session.WholeName())
		}
		g.labels = append(g.labels, names.Visible(label))
	}
	return g
}

// add adds a row.
func (g *group) add(r *Row) {
	if g.sessions == nil {
		g.sessions = map[*listing.Info]bool{}
	}
	g.Sum.Add(r.Sum)
	g.sessions[r.Session] = true
	began, _ := r.Session.Created()
	now := moment{r.Day, began}
	if now.compare(g.latest) > 0 {
		g.latest = now
	}
}

// maxNamed is how many models without a price are named.
const maxNamed = 10

// notes returns the lines below the sums: the source of the prices, and the models without a price.
func (s *Stats) notes() (notes []string) {
	if s.total.Listed.isPositive() {
		notes = append(notes, fmt.Sprintf("at list prices of %s; a subscription is billed differently",
			names.Visible(s.Prices.Source())))
	}
	if s.Prices.Source() == "" {
		return notes
	}
	var unknown, fast []string // models without a price, and those without one for fast mode
	for _, model := range slices.Sorted(maps.Keys(s.unpriced)) {
		if _, isKnown := s.Prices.find(model); isKnown {
			fast = append(fast, model)
		} else {
			unknown = append(unknown, model)
		}
	}
	if len(unknown) > 0 {
		notes = append(notes, "no price is known for answers of "+namesOf(unknown)+"; add one with -o prices=FILE")
	}
	if len(fast) > 0 {
		notes = append(notes, "no price for fast mode of "+namesOf(fast)+"; add one with -o prices=FILE")
	}
	return notes
}

// namesOf returns the names of models for a person, the first maxNamed of many.
func namesOf(models []string) string {
	more := ""
	if len(models) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(models)-maxNamed)
		models = models[:maxNamed]
	}
	return names.Visible(strings.Join(models, ", ")) + more
}

// list returns the lines: spans of time in their order, others by their measure.
func (s *Stats) list() []*group {
	_, value := s.measure()
	order := func(key int, a, b *group, name, other string) int {
		byName := cmp.Compare(name, other)
		if isTime(s.by[key]) {
			return byName
		}
		byMeasure := cmp.Compare(value(b), value(a))
		byTokens := cmp.Compare(b.TotalTokens, a.TotalTokens)
		return cmp.Or(byMeasure, byTokens, byName)
	}
	return slices.SortedFunc(maps.Values(s.lines), func(a, b *group) int {
		if a.first != b.first {
			return order(0, a.first, b.first, a.names[0], b.names[0])
		}
		last := len(s.by) - 1
		return order(last, a, b, a.names[last], b.names[last])
	})
}

// lastShown is how many days, hours or sessions a terminal shows.
const lastShown = 30

// last returns the lines of the last days, hours or sessions that have any, and a note if these are
// not all.
func (s *Stats) last(groups []*group) (shown []*group, note string) {
	by := s.by[0]
	isBounded := by == ByDay || by == byHour || by == bySession
	if !isBounded || len(s.firsts) <= lastShown {
		return groups, ""
	}
	byAge := func(name, other string) int {
		latest := s.firsts[name].latest
		order := s.firsts[other].latest.compare(latest)
		if order == 0 {
			order = cmp.Compare(name, other)
		}
		return order
	}
	newestFirst := slices.SortedFunc(maps.Keys(s.firsts), byAge)
	recent := newestFirst[:lastShown]
	shown = slices.DeleteFunc(groups, func(g *group) bool {
		return !slices.Contains(recent, g.names[0])
	})
	note = fmt.Sprintf("the last %d of %d %ss; --since shows more, and total is that of all\n",
		lastShown, len(s.firsts), by)
	return shown, note
}

// measure returns the quantity of the bars: calls, dollars, or tokens where no cost is known.
func (s *Stats) measure() (name string, of func(*group) float64) {
	calls := func(g *group) float64 {
		return float64(g.AssistantMessages)
	}
	cost := func(g *group) float64 {
		return g.Cost.Total.Float()
	}
	tokens := func(g *group) float64 {
		return float64(g.TotalTokens)
	}
	switch {
	case s.OfTools():
		return "calls", calls
	case s.total.Cost.Total.isPositive():
		return "cost", cost
	}
	return "tokens", tokens
}

// WriteJSON writes an object a line for each group: its name, the sum with the keys of usage.jsonl,
// and the time zone of a span of time.
func (s *Stats) WriteJSON(out io.Writer) error {
	groups := s.list()
	isByDay := slices.Equal(s.by, []string{ByDay})
	if len(groups) == 0 && isByDay && s.Empty != "" {
		groups = []*group{{names: []string{s.Empty}}}
	}
	var lines []byte
	zone := ""
	if slices.ContainsFunc(s.by, isTime) {
		zone = sessioncore.ZoneName()
	}
	for _, g := range groups {
		var sum any = struct {
			Sessions int `json:"sessions"`
			*Sum
			Zone string `json:"tz,omitempty"`
		}{len(g.sessions), &g.Sum, zone}
		if s.OfTools() {
			sum = map[string]int{"sessions": len(g.sessions), "calls": g.AssistantMessages}
		}
		group := map[string]string{}
		for i, name := range g.names {
			group[s.by[i]] = name
		}
		lines = rawjson.AppendLine(lines, group)
		lines = bytes.TrimSuffix(lines, []byte("}\n"))
		at := len(lines)
		lines = rawjson.AppendLine(lines, sum)
		lines[at] = ',' // instead of "{", so that both are one object
	}
	_, err := out.Write(lines)
	return err
}

// minBar is for how many characters of a bar names are cut, and maxBar is the width of the longest
// bar, in characters.
const (
	minBar = 10
	maxBar = 40
	// minTitle is the number of characters that a title keeps behind its id.
	minTitle = 6
)

// cells returns the columns of a line behind the name, as text.
func (s *Stats) cells(g *group) []string {
	cells := []string{fmt.Sprint(len(g.sessions)), fmt.Sprint(g.AssistantMessages)}
	if !s.OfTools() {
		cells = append(cells, Short(float64(g.TotalTokens)), names.OrDash(g.Dollars()))
	}
	return cells
}

// titles returns the titles of the columns with sums.
func (s *Stats) titles() []string {
	if s.OfTools() {
		return []string{"sessions", "calls"}
	}
	return []string{"sessions", "answers", "tokens", "cost"}
}

// Dollars returns a cost for people, such as $1.50: "" where nobody knows any, with a + where not
// all is known.
func (u *Sum) Dollars() string {
	switch {
	case u.Cost.IsZero():
		return ""
	case u.Unpriced > 0:
		return fmt.Sprintf("$%.2f+", u.Cost.Total.Float())
	}
	return fmt.Sprintf("$%.2f", u.Cost.Total.Float())
}

// Short returns a number that is not negative in at most five characters, such as 1.2k.
func Short(n float64) string {
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

// rowNames returns the first columns of a line: the names of its keys. An id stands before the
// title of a session, which is whole where no name is cut.
func (s *Stats) rowNames(g *group, width int) []string {
	row := slices.Clone(g.labels)
	for i, by := range s.by {
		if by != bySession || row[i] == g.id {
			continue
		}
		title := row[i]
		if width == NoWidth {
			title = g.title
		}
		row[i] = g.id + " " + title
	}
	return row
}

const (
	// NoWidth is the width of a table that cuts no name.
	NoWidth = 0
	// TableWidth is the width of a table where no terminal tells its own, in characters.
	TableWidth = 80
)

// Table returns the lines with bars, for a terminal of so many columns; for NoWidth no name is cut.
// Bars are made of blocks: a whole one, and parts of one by their length. A recent one has the last
// days, hours or sessions alone. Where a line has no room, its names stand above its numbers.
func (s *Stats) Table(width int, blocks []string, recent bool) []byte {
	groups := s.list()
	left := ""
	if len(groups) == 0 {
		if s.OfTools() {
			return []byte("no session calls a tool in that time\n")
		}
		return []byte("nothing was used in that time\n")
	}
	if recent {
		groups, left = s.last(groups)
	}
	var out bytes.Buffer
	rows := s.rows(groups, width)
	bar := s.fit(rows, width)
	if width != NoWidth && lineWidth(rows) > width {
		s.writeStacked(&out, s.rows(groups, width), width)
	} else {
		s.writeRows(&out, rows, s.bars(groups, bar, blocks))
	}
	for _, note := range s.notes() {
		out.WriteString(note + "\n")
	}
	out.WriteString(left)
	return out.Bytes()
}

// rows returns the lines of a table, the titles first and the total last.
func (s *Stats) rows(groups []*group, width int) [][]string {
	titles := slices.Concat(s.by, s.titles())
	rows := [][]string{titles}
	for _, g := range groups {
		row := slices.Concat(s.rowNames(g, width), s.cells(g))
		rows = append(rows, row)
	}
	labels := make([]string, len(s.by))
	labels[0] = "total"
	total := slices.Concat(labels, s.cells(&s.total))
	return append(rows, total)
}

// lineWidth returns the width of the lines of rows.
func lineWidth(rows [][]string) int {
	width := gap * (len(rows[0]) - 1)
	for column := range rows[0] {
		width += widest(rows, column)
	}
	return width
}

// gap is the number of blanks between two columns.
const gap = 2

// writeRows writes a line for each row, with a bar where there is one.
func (s *Stats) writeRows(out *bytes.Buffer, rows [][]string, bars []string) {
	for i, row := range rows {
		for column, cell := range row {
			if column > 0 {
				fmt.Fprintf(out, "%*s", gap, "")
			}
			if column < len(s.by) {
				fmt.Fprintf(out, "%-*s", widest(rows, column), cell)
			} else {
				fmt.Fprintf(out, "%*s", widest(rows, column), cell)
			}
		}
		if bars[i] != "" {
			fmt.Fprintf(out, "%*s%s", gap, "", bars[i])
		}
		out.WriteByte('\n')
	}
}

// writeStacked writes the names of each row above its numbers, the title of a session below its id.
func (s *Stats) writeStacked(out *bytes.Buffer, rows [][]string, width int) {
	named := len(s.by)
	for _, row := range rows {
		for key, name := range row[:named] {
			if s.by[key] == bySession {
				id, title, _ := strings.Cut(name, " ")
				out.WriteString(id + "\n")
				name = title
			}
			if s.by[key] != byCWD {
				name = shortened(name, width, false)
			}
			if name != "" {
				out.WriteString(name + "\n")
			}
		}
		for column := named; column < len(row); column++ {
			fmt.Fprintf(out, "%*s%*s", gap, "", widest(rows, column), row[column])
		}
		out.WriteByte('\n')
	}
}

// bars returns the bars of the rows of groups, "" for the titles, the total and a group without one.
func (s *Stats) bars(groups []*group, width int, blocks []string) []string {
	bars := []string{""}
	for _, share := range s.shares(groups) {
		bars = append(bars, drawBar(share*float64(width), blocks))
	}
	return append(bars, "")
}

// fit cuts the names in rows so that these have so many columns with a bar. It returns the bar's width.
func (s *Stats) fit(rows [][]string, width int) (bar int) {
	room := width
	if width == NoWidth {
		room = TableWidth
	}
	room -= gap * (len(rows[0]) - 1)
	for k := len(s.by); k < len(rows[0]); k++ {
		room -= widest(rows, k)
	}
	if width != NoWidth {
		s.cutNames(rows, room)
	}
	for k := range s.by {
		room -= widest(rows, k)
	}
	return max(0, min(maxBar, room-gap))
}

// cutNames cuts the names in rows so that the names of a line have so much room.
func (s *Stats) cutNames(rows [][]string, room int) {
	named := len(s.by)
	free := room
	rest := widest(rows, 1) // the rest is for the other key
	if named == 1 {
		free = room - minBar
		rest = 0
	}
	for i := range named {
		share := free / (named - i)
		if rest > 0 && s.by[1] == byCWD { // paths are not cut, and leave no half
			share = 0
		}
		most := max(share, free-rest, minBar)
		if s.by[i] == byModel && widest(rows, i) > most {
			dropProviders(rows, i)
		}
		most = s.distinct(rows, i, most)
		for _, row := range rows {
			row[i] = s.cut(i, row[i], most)
		}
		free -= widest(rows, i)
		rest = 0
	}
}

// distinct returns the least width, of at least most, that cuts no two names in a column to
// the same.
func (s *Stats) distinct(rows [][]string, column, most int) int {
	for ; most < widest(rows, column); most++ {
		known := map[string]string{}
		isDouble := func(row []string) bool {
			name := row[column]
			short := s.cut(column, name, most)
			other, ok := known[short]
			known[short] = name
			return ok && other != name
		}
		if !slices.ContainsFunc(rows, isDouble) {
			break
		}
	}
	return most
}

// dropProviders takes the providers from the models in a column, but for models that two providers
// have.
func dropProviders(rows [][]string, column int) {
	bare := func(model string) string { return model[strings.LastIndexByte(model, '/')+1:] }
	models := map[string]string{} // by their names without a provider; "" for several
	for _, row := range rows {
		name := bare(row[column])
		if known, ok := models[name]; ok && known != row[column] {
			models[name] = ""
		} else {
			models[name] = row[column]
		}
	}
	for _, row := range rows {
		if name := bare(row[column]); models[name] != "" {
			row[column] = name
		}
	}
}

// shares returns how long the bars are. The bar of the largest group has the length 1.
func (s *Stats) shares(groups []*group) []float64 {
	_, value := s.measure()
	most := 0.0
	for _, g := range groups {
		most = max(most, value(g))
	}
	shares := make([]float64, len(groups))
	for i, g := range groups {
		share := value(g) / most
		if share > 0 { // a sum that overflows has none
			shares[i] = share
		}
	}
	return shares
}

// widest returns the width of the widest cell of a column, in characters.
func widest(rows [][]string, column int) (width int) {
	for _, row := range rows {
		width = max(width, utf8.RuneCountInString(row[column]))
	}
	return width
}

// cut shortens the name of a key at its end, but neither a path nor the id of a session.
func (s *Stats) cut(key int, name string, width int) string {
	switch s.by[key] {
	case byCWD:
		return name
	case bySession:
		id, title, _ := strings.Cut(name, " ")
		if title == "" {
			return name
		}
		return id + " " + shortened(title, max(minTitle, width-utf8.RuneCountInString(id)-1), false)
	}
	return shortened(name, width, false)
}

// shortened returns a name in so many characters: a path without its beginning, as its end tells
// more, any other one without its end.
func shortened(name string, width int, isPath bool) string {
	r := []rune(name)
	switch {
	case len(r) <= width:
		return name
	case isPath:
		return "…" + string(r[len(r)-width+1:])
	}
	return string(r[:width-1]) + "…"
}

// drawBar returns a bar of a length in cells. blocks are a full cell, and then the parts of a cell from the
// smallest on.
func drawBar(length float64, blocks []string) string {
	parts := int(length*float64(len(blocks)) + 0.5)
	bar := strings.Repeat(blocks[0], parts/len(blocks))
	rest := parts % len(blocks)
	if rest > 0 {
		bar += blocks[rest]
	}
	return bar
}

// Sizes in the picture of the bars, in pixels.
const (
	svgWidth     = 800
	svgLine      = 22  // height of a line
	svgBarsAt    = 320 // the left end of the bars
	svgLongest   = 360 // length of the longest bar
	svgLabelSize = 40  // of the labels of a line, in characters
)

// SVG returns the bars as a picture that loads nothing, a line for each group.
func (s *Stats) SVG() []byte {
	groups := s.list()
	notes := s.notes()
	shares := s.shares(groups)
	measure, _ := s.measure()
	title := measure + " by " + strings.Join(s.by, ", ")
	height := svgLine * (len(groups) + len(notes) + 2)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"`, svgWidth, height)
	out.WriteString(` role="img" font-family="sans-serif" font-size="13">` + "\n")
	fmt.Fprintf(&out, "<title>%s</title>\n", title)
	out.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	fmt.Fprintf(&out, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", svgBarsAt, svgLine-6, title)
	for i, g := range groups {
		top := (i + 1) * svgLine
		length := shares[i] * svgLongest
		s.writeBar(&out, g, top, length)
	}
	for i, note := range notes {
		y := (len(groups) + i + 2) * svgLine
		fmt.Fprintf(&out, `<text x="8" y="%d">%s</text>`+"\n", y, html.EscapeString(note))
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// writeBar writes the line of a group in the picture: its labels, its bar and its measure.
func (s *Stats) writeBar(out *bytes.Buffer, g *group, top int, length float64) {
	labels := slices.Clone(g.labels)
	for i := range labels {
		labels[i] = shortened(labels[i], svgLabelSize/len(labels), s.by[i] == byCWD)
	}
	label := html.EscapeString(strings.Join(labels, ", "))
	cells := s.cells(g)
	measure := cells[len(cells)-1]
	textAt := top + 15
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="end">%s</text>`, svgBarsAt-8, textAt, label)
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%.1f" height="%d"`, svgBarsAt, top+2, length, svgLine-4)
	out.WriteString(` fill="#4a7ab5"/>`)
	fmt.Fprintf(out, `<text x="%.1f" y="%d">%s</text>`+"\n", svgBarsAt+length+6, textAt, measure)
}
