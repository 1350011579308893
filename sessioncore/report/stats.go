package report

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
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
	names, labels []string // by key: its name, and its label for a person
	id, title     string   // of its session, if that is a key; the title is whole
	first         *group   // the sum of all groups with its first name; nil in such a sum
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
	byWeek    = "week"
	byMonth   = "month"
	byModel   = "model"
	byCWD     = "cwd"
	bySession = "session"
	byAgent   = "agent"
	byWho     = "who"
	byTool    = "tool"

	// ByDay is the default key.
	ByDay = "day"
)

// Keys are the names of the keys that costs can be added up by, in the order of the help.
var Keys = []string{byHour, ByDay, byWeek, byMonth, byModel, byCWD, bySession, byAgent, byWho, byTool}

// groupOf returns the name of a row's group for one of Keys. agent is the agent of the row's session. In
// rows of NewCalls the model is a tool.
func groupOf(key string, r *Row, agent string) string {
	switch key {
	case byHour:
		return r.Day.Format("2006-01-02 15:04")
	case ByDay:
		return r.Day.Format(time.DateOnly)
	case byWeek:
		year, week := r.Day.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	case byMonth:
		return r.Day.Format("2006-01")
	case byModel, byTool:
		return r.Model
	case byCWD:
		return names.OrDash(r.Session.CWD)
	case bySession:
		return r.Session.Path()
	case byAgent:
		return agent
	}
	return names.OrDash(r.Session.Who()) // byWho, where several people share a database
}

// isTime reports whether a key is a span of time. The names of its groups sort by time.
func isTime(key string) bool {
	return key == byHour || key == ByDay || key == byWeek || key == byMonth
}

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

// areKeys reports whether bys are one of Keys or two different ones.
func areKeys(bys []string) bool {
	for _, by := range bys {
		if !slices.Contains(Keys, by) {
			return false
		}
	}
	switch len(bys) {
	case 1:
		return true
	case 2:
		return bys[0] != bys[1]
	}
	return false // of none, or of more than a line has room for
}

// OfTools reports whether calls of tools are counted, in rows of NewCalls.
func (s *Stats) OfTools() bool { return slices.Contains(s.by, byTool) }

// ByHours reports whether rows of hours are needed.
func (s *Stats) ByHours() bool { return slices.Contains(s.by, byHour) }

// OfSessions reports whether the sums are of sessions, which are shown with their titles.
func (s *Stats) OfSessions() bool { return slices.Contains(s.by, bySession) }

// Add adds a row of a session of an agent: to its line, to the sum of the lines with its first key, and to
// the total.
func (s *Stats) Add(r *Row, agent string) {
	var key [2]string
	for i, by := range s.by {
		key[i] = groupOf(by, r, agent)
	}
	first := key[0]
	if s.firsts[first] == nil {
		s.firsts[first] = &group{names: []string{first}}
	}
	line := s.lines[key]
	if line == nil {
		line = s.newGroup(key, r)
		s.lines[key] = line
	}
	line.add(r)
	line.first.add(r)
	s.total.add(r)
	isModel := strings.Contains(r.Model, "/") // and not the name of subagents or of pi's tools
	if r.Sum.Unpriced > 0 && isModel {
		s.unpriced[r.Model] = true
	}
}

// newGroup returns the group of a row, without its sums. Its first key has a sum in s.firsts. A session is
// labelled by its name, if it has one, else by its path.
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

// add adds a row to the sum, its session to the sessions, and its day to the latest use.
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

// notes returns the lines below the sums: the source of the prices, and the models without a price. Where
// no prices are in use, a model without one needs no word.
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

// namesOf returns the names of models for a person, the first maxNamed of many and the number of the others.
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
	return slices.SortedFunc(maps.Values(s.lines), func(a, b *group) int {
		if a.first != b.first {
			return s.compare(0, a.first, b.first)
		}
		return s.compare(len(s.by)-1, a, b)
	})
}

// compare orders two groups by their names for the key of this number in s.by, if that is a span of
// time; otherwise the group with the larger measure comes first.
func (s *Stats) compare(key int, a, b *group) int {
	byName := cmp.Compare(a.names[key], b.names[key])
	if isTime(s.by[key]) {
		return byName
	}
	measure := s.measure()
	byMeasure := cmp.Compare(measure.of(b), measure.of(a))
	byTokens := cmp.Compare(b.TotalTokens, a.TotalTokens)
	return cmp.Or(byMeasure, byTokens, byName)
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

// barMeasure is a quantity that bars show. Its value is its name for a person.
type barMeasure string

const (
	measureCalls  barMeasure = "calls"
	measureCost   barMeasure = "cost" // in dollars
	measureTokens barMeasure = "tokens"
)

// measure returns the measure of s: tokens where no cost is known.
func (s *Stats) measure() barMeasure {
	switch {
	case s.OfTools():
		return measureCalls
	case s.total.Cost.Total.isPositive():
		return measureCost
	}
	return measureTokens
}

// of returns the quantity of a group.
func (m barMeasure) of(g *group) float64 {
	switch m {
	case measureCalls:
		return float64(g.AssistantMessages)
	case measureCost:
		return g.Cost.Total.Float()
	}
	return float64(g.TotalTokens)
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
		joint := len(lines)
		lines = rawjson.AppendLine(lines, sum)
		lines[joint] = ',' // instead of "{", so that both are one object
	}
	_, err := out.Write(lines)
	return err
}

const (
	// minBar is the width that names are cut for, so that a bar has room, and maxBar the width of the
	// longest bar, in characters.
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

// Short returns a number that is not negative in at most five characters, such as 1.2k. From 1000 G on
// it has more.
func Short(n float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if n < 999.5 || unit == "G" { // which is not rounded up to 1000
			if unit != "" && n < 9.95 { // nor to 10.0
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
// Bars are made of blocks: a whole one, and parts of one by their length. With recent, only the last
// days, hours or sessions have lines. Where a line has no room, its names stand above its numbers.
func (s *Stats) Table(width int, blocks []string, recent bool) []byte {
	groups := s.list()
	leftOut := ""
	if len(groups) == 0 {
		if s.OfTools() {
			return []byte("no session calls a tool in that time\n")
		}
		return []byte("nothing was used in that time\n")
	}
	if recent {
		groups, leftOut = s.last(groups)
	}
	var out bytes.Buffer
	rows := s.rows(groups, width)
	bar := s.fit(rows, width)
	if width != NoWidth && lineWidth(rows) > width {
		whole := s.rows(groups, width) // as fit has cut the names in rows
		s.writeStacked(&out, whole, width)
	} else {
		s.writeRows(&out, rows, s.bars(groups, bar, blocks))
	}
	for _, note := range s.notes() {
		out.WriteString(note + "\n")
	}
	out.WriteString(leftOut)
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

// lineWidth returns the width of the lines of rows without bars, in characters. All rows have the same
// number of columns.
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

// writeStacked writes the names of each row above its numbers, the title of a session below its id. Names
// are cut to the width, but ids and paths are whole, to be copied.
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

// fit cuts the names in rows, in place, so that a line with its bar fits into width characters. It
// returns the width of the longest bar, 0 if none has room. For NoWidth it cuts nothing.
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

// cutNames cuts the names in rows, in place, so that the names of a line fit into room characters. With
// two keys the first may take half of them, and more if the second one needs less than its half. Names
// stay at least minBar long, and as long as they are different.
func (s *Stats) cutNames(rows [][]string, room int) {
	named := len(s.by)
	free := room
	rest := widest(rows, 1) // the width of the second key's names
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

// distinct returns the least width, of at least most characters, that cuts no two names in a column to
// the same, or the width of the widest name.
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

// dropProviders takes the providers from the models in a column of rows, but for models that two
// providers have.
func dropProviders(rows [][]string, column int) {
	bare := func(model string) string {
		return model[strings.LastIndexByte(model, '/')+1:]
	}
	models := map[string]string{} // by their names without a provider; "" for several
	for _, row := range rows {
		model := row[column]
		name := bare(model)
		known, isKnown := models[name]
		models[name] = model
		if isKnown && known != model {
			models[name] = ""
		}
	}
	for _, row := range rows {
		name := bare(row[column])
		if models[name] != "" {
			row[column] = name
		}
	}
}

// shares returns how long the bars are. The bar of the largest group has the length 1.
func (s *Stats) shares(groups []*group) []float64 {
	measure := s.measure()
	most := 0.0
	for _, g := range groups {
		most = max(most, measure.of(g))
	}
	shares := make([]float64, len(groups))
	for i, g := range groups {
		share := measure.of(g) / most
		if share > 0 { // not of a sum that overflows, nor where all are 0: their share is no number
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

// cut shortens the name of the key of this number at its end to width characters, but neither a path nor
// the id of a session. A title keeps at least minTitle characters.
func (s *Stats) cut(key int, name string, width int) string {
	switch s.by[key] {
	case byCWD:
		return name
	case bySession:
		id, title, _ := strings.Cut(name, " ")
		if title == "" {
			return name
		}
		room := width - utf8.RuneCountInString(id+" ")
		return id + " " + shortened(title, max(minTitle, room), false)
	}
	return shortened(name, width, false)
}

// shortened returns a name in at most width characters, which is 1 or more: a path without
// its beginning, as its end tells more, any other name without its end.
func shortened(name string, width int, isPath bool) string {
	characters := []rune(name)
	kept := width - len([]rune("…"))
	switch {
	case len(characters) <= width:
		return name
	case isPath:
		return "…" + string(characters[len(characters)-kept:])
	}
	return string(characters[:kept]) + "…"
}

// drawBar returns a bar of a length in cells, rounded to a part of a cell. blocks are a full cell, and then
// the parts of a cell from the smallest on.
func drawBar(length float64, blocks []string) string {
	parts := int(math.Round(length * float64(len(blocks))))
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
	svgBaseline  = 15  // from the top of a line to the foot of its text
	svgMargin    = 2   // above and below a bar
	svgTextGap   = 8   // beside a text
)

// SVG returns the bars as a picture that loads nothing, a line for each group.
func (s *Stats) SVG() []byte {
	groups := s.list()
	notes := s.notes()
	shares := s.shares(groups)
	title := string(s.measure()) + " by " + strings.Join(s.by, ", ")
	height := svgLine * (len(groups) + len(notes) + 2)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"`, svgWidth, height)
	out.WriteString(` role="img" font-family="sans-serif" font-size="13">` + "\n")
	fmt.Fprintf(&out, "<title>%s</title>\n", title)
	out.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	const titleFoot = svgLine - 6
	fmt.Fprintf(&out, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", svgBarsAt, titleFoot, title)
	for i, g := range groups {
		top := (i + 1) * svgLine
		length := shares[i] * svgLongest
		s.writeBar(&out, g, top, length)
	}
	for i, note := range notes {
		y := (len(groups) + i + 2) * svgLine
		fmt.Fprintf(&out, `<text x="%d" y="%d">%s</text>`+"\n", svgTextGap, y, html.EscapeString(note))
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// writeBar writes the line of a group in the picture: its labels, its bar and its measure, which is the last
// of its cells. top and length are in pixels.
func (s *Stats) writeBar(out *bytes.Buffer, g *group, top int, length float64) {
	labels := slices.Clone(g.labels)
	for i := range labels {
		labels[i] = shortened(labels[i], svgLabelSize/len(labels), s.by[i] == byCWD)
	}
	label := html.EscapeString(strings.Join(labels, ", "))
	cells := s.cells(g)
	measure := cells[len(cells)-1]
	foot := top + svgBaseline
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="end">%s</text>`, svgBarsAt-svgTextGap, foot, label)
	const barHeight = svgLine - 2*svgMargin
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%.1f" height="%d"`, svgBarsAt, top+svgMargin, length, barHeight)
	out.WriteString(` fill="#4a7ab5"/>`)
	barEnd := svgBarsAt + length
	fmt.Fprintf(out, `<text x="%.1f" y="%d">%s</text>`+"\n", barEnd+6, foot, measure)
}
