package view

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"sessionfs/sessioncore"
)

// Site is the content of the first page of a site.
type Site struct {
	Sessions []Linked
	Days     map[string]float64 // the cost of each day
	Total    string             // the cost of all, for people, "" where nobody knows any
}

// Linked is a session that has a page.
type Linked struct {
	File    string    `json:"-"` // the name of the page
	Title   string    `json:"title"`
	Project string    `json:"project"`
	Agent   string    `json:"agent"`
	Began   time.Time `json:"began"`
	Cost    string    `json:"cost"` // for people, "" where nobody knows any
	Dollars float64   `json:"dollars"`
}

func (l *Linked) day() string { return l.Began.Local().Format(time.DateOnly) }

// sessionGroup is a number of sessions under a name, the newest first.
type sessionGroup struct {
	name     string
	sessions []*Linked
	dollars  float64
}

// grouped returns the sessions by a key, in the order of the first one of each group.
func grouped(sessions []Linked, key func(*Linked) string) (groups []*sessionGroup) {
	known := map[string]*sessionGroup{}
	for i := range sessions {
		name := key(&sessions[i])
		if known[name] == nil {
			known[name] = &sessionGroup{name: name}
			groups = append(groups, known[name])
		}
		g := known[name]
		g.sessions = append(g.sessions, &sessions[i])
		g.dollars += sessions[i].Dollars
	}
	return groups
}

// about returns the number and the cost of the sessions for people.
func (g *sessionGroup) about() markup { return escaped(aboutSessions(len(g.sessions), g.dollars)) }

// aboutSessions returns "2 sessions · $1.50", or only the number without a cost.
func aboutSessions(n int, dollars float64) string {
	text := fmt.Sprintf("%d sessions", n)
	if n == 1 {
		text = "1 session"
	}
	if dollars > 0 {
		text += fmt.Sprintf(" · $%.2f", dollars)
	}
	return text
}

// Index writes the first page of a site: a plot of the year, and all sessions by day, by project
// and by agent.
func Index(w io.Writer, site Site) error {
	slices.SortFunc(site.Sessions, newerFirst)
	days := grouped(site.Sessions, (*Linked).day)
	projects := grouped(site.Sessions, func(l *Linked) string {
		if l.Project == "" {
			return "No project"
		}
		return l.Project
	})
	agents := grouped(site.Sessions, func(l *Linked) string {
		return l.Agent
	})
	x := htmlWriter{bufio.NewWriter(w)}
	x.begin("", "Sessions")
	x.facts(
		[2]string{"Sessions", strconv.Itoa(len(site.Sessions))},
		[2]string{"Projects", strconv.Itoa(len(projects))},
		[2]string{"Agents", strconv.Itoa(len(agents))},
		[2]string{"Cost", site.Total},
		[2]string{"Time zone", sessioncore.ZoneName()},
	)
	x.plot(days, site.Days)
	x.write("</header>\n", indexTools())
	x.dayLinks(days)
	x.write("</div>\n<main id=\"/main\">\n")
	x.byDay(days)
	x.byCost("project", projects)
	x.byCost("agent", agents)
	x.write("</main>\n", pageShell().end)
	return x.out.Flush()
}

// newerFirst puts the newer one of two sessions first, of one time the one with the lower name of its page.
func newerFirst(a, b Linked) int {
	order := b.Began.Compare(a.Began)
	if order == 0 {
		order = cmp.Compare(a.File, b.File)
	}
	return order
}

// dayLinks writes the sidebar of the first page: links to the groups of its page.
func (x htmlWriter) dayLinks(days []*sessionGroup) {
	x.write("<nav aria-label=\"Days\">\n<ul>\n")
	x.write("<li><a href=\"#/project\">By project</a></li>\n<li><a href=\"#/agent\">By agent</a></li>\n")
	for _, g := range days {
		name := escaped(g.name)
		x.write(`<li><a href="#/`, name, `">`, name, " <b>", g.about(), "</b></a></li>\n")
	}
	x.write("</ul>\n</nav>\n")
}

// byDay writes the sessions of each day.
func (x htmlWriter) byDay(days []*sessionGroup) {
	x.write("<h2>By day</h2>\n")
	for _, g := range days {
		name := escaped(g.name)
		day, _ := time.Parse(time.DateOnly, g.name)
		weekday := escaped(day.Weekday().String())
		x.write(`<div class="group"><h3 id="/`, name, `">`, name, ", ", weekday)
		x.write(" <i>", g.about(), "</i></h3>\n")
		x.rows(g)
		x.write("</div>\n")
	}
}

// byCost writes the sessions of each project or agent, the most expensive one first.
func (x htmlWriter) byCost(kind markup, groups []*sessionGroup) {
	slices.SortStableFunc(groups, func(a, b *sessionGroup) int {
		return cmp.Compare(b.dollars, a.dollars)
	})
	x.write(`<h2 id="/`, kind, `">By `, kind, "</h2>\n")
	for _, g := range groups {
		x.write(`<details class="group"><summary>`, escaped(g.name), " <i>", g.about(), "</i></summary>\n")
		x.rows(g)
		x.write("</details>\n")
	}
}

// rows writes a line for each session of a group, with a link to its page.
func (x htmlWriter) rows(g *sessionGroup) {
	x.write("<ul class=\"rows\">\n")
	for _, l := range g.sessions {
		title := l.Title
		if title == "" {
			title = "Session"
		}
		began := l.Began.Local().Format("2006-01-02 15:04")
		x.write(`<li class="row"><a href="`, escaped(url.PathEscape(l.File)), `">`, escaped(title), "</a>")
		x.write("<span>", escaped(l.Project), "</span>")
		x.write("<span>", escaped(l.Agent), "</span>")
		x.write("<time>", escaped(began), "</time>")
		x.write("<b>", escaped(l.Cost), "</b></li>\n")
	}
	x.write("</ul>\n")
}

const (
	// weeks is the number of columns of a plot, which shows a year.
	weeks = 53
	// cell is the distance of days in a plot, and margin the room for the names of weekdays and
	// months.
	cell, margin = 13, 30
	// levels is how many colours a plot has.
	levels = 4
	// baseline is the distance of a weekday's name from the upper edge of its day, down to the baseline, and
	// aboveDays the distance of a month's name from the days.
	baseline, aboveDays = 10, 8
)

// plot draws the year up to the last day as a calendar: a column for each week, darker where a day
// cost more, or, where nobody knows a cost, had more sessions.
func (x htmlWriter) plot(days []*sessionGroup, dollars map[string]float64) {
	p, hasDays := newYearPlot(days, dollars)
	if !hasDays {
		return
	}
	width := strconv.Itoa(margin + weeks*cell)
	height := strconv.Itoa(margin + 7*cell)
	last := escaped(p.last)
	x.write(`<figure tabindex="0"><svg viewBox="0 0 `, escaped(width), " ", escaped(height),
		`" role="img" aria-label="`, p.caption(), " of each day in the year to ", last, "\">\n")
	for i, name := range []string{"Mon", "Wed", "Fri"} {
		row := margin + 2*i*cell // each second day has a name
		fmt.Fprintf(x.out, `<text x="0" y="%d">%s</text>`, row+baseline, name)
	}
	for day := range p.eachDay {
		x.plotDay(p, day)
	}
	x.write("</svg>\n<figcaption>", p.caption(), " by day, the year to ", last, "</figcaption></figure>\n")
}

// plotDay draws a day, and the name of a month above its first day.
func (x htmlWriter) plotDay(p *yearPlot, day time.Time) {
	number := int(day.Sub(p.begin).Hours() / 24)
	week := number / 7
	weekday := number % 7
	column := margin + week*cell
	row := margin + weekday*cell
	if day.Day() == 1 {
		fmt.Fprintf(x.out, `<text x="%d" y="%d">%s</text>`, column, margin-aboveDays, day.Format("Jan"))
	}
	name := day.Format(time.DateOnly)
	about := aboutSessions(p.sessions[name], p.dollars[name])
	fmt.Fprintf(x.out, `<rect x="%d" y="%d" class="l%d"><title>%s: %s</title></rect>`+"\n",
		column, row, p.level(name), name, about)
}

// yearPlot has the values of the days of a year: costs, or numbers of sessions where nobody knows a cost.
type yearPlot struct {
	begin    time.Time // a Monday
	end      time.Time
	last     string // the name of the last day
	sessions map[string]int
	dollars  map[string]float64
	hasCost  bool
	most     float64 // the largest value
}

// newYearPlot returns the plot of the year up to the last day, false if there are no days.
func newYearPlot(days []*sessionGroup, dollars map[string]float64) (*yearPlot, bool) {
	p := &yearPlot{sessions: map[string]int{}, dollars: dollars}
	for _, g := range days {
		p.sessions[g.name] = len(g.sessions)
		p.last = max(p.last, g.name)
	}
	for day, cost := range dollars {
		p.last = max(p.last, day)
		if cost > 0 {
			p.hasCost = true
		}
	}
	end, err := time.Parse(time.DateOnly, p.last)
	if err != nil {
		return nil, false
	}
	p.end = end
	sinceMonday := (int(end.Weekday()) + 6) % 7 // Weekday begins on Sunday
	earlierWeeks := 7 * (weeks - 1)             // in days
	p.begin = end.AddDate(0, 0, -earlierWeeks-sinceMonday)
	for day := range p.eachDay {
		p.most = max(p.most, p.value(day.Format(time.DateOnly)))
	}
	return p, true
}

// eachDay calls yield for the days of the year in their order.
func (p *yearPlot) eachDay(yield func(time.Time) bool) {
	for day := p.begin; !day.After(p.end); day = day.AddDate(0, 0, 1) {
		if !yield(day) {
			return
		}
	}
}

// caption returns the name of the values.
func (p *yearPlot) caption() markup {
	if p.hasCost {
		return "Cost"
	}
	return "Sessions"
}

// value returns the value of a day.
func (p *yearPlot) value(day string) float64 {
	if p.hasCost {
		return p.dollars[day]
	}
	return float64(p.sessions[day])
}

// level returns how dark a day is, from 0 for a day without a value to levels.
func (p *yearPlot) level(day string) int {
	value := p.value(day)
	if value <= 0 {
		return 0
	}
	share := math.Sqrt(value / p.most) // so that one large day does not make all others pale
	return min(levels, 1+int(levels*share))
}
