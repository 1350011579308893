package view

import (
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

// Href returns the link to the page.
func (l *Linked) Href() string { return url.PathEscape(l.File) }

// Time returns the begin of the session for people.
func (l *Linked) Time() string { return l.Began.Local().Format("2006-01-02 15:04") }

// group is a number of sessions under a name, the newest first.
type group struct {
	Name     string
	Sessions []*Linked
	dollars  float64
}

// grouped returns the sessions by a key, in the order of the first ones.
func grouped(sessions []Linked, key func(*Linked) string) (groups []*group) {
	known := map[string]*group{}
	for i := range sessions {
		name := key(&sessions[i])
		if known[name] == nil {
			known[name] = &group{Name: name}
			groups = append(groups, known[name])
		}
		g := known[name]
		g.Sessions, g.dollars = append(g.Sessions, &sessions[i]), g.dollars+sessions[i].Dollars
	}
	return groups
}

// About returns the number and the cost of the sessions for people.
func (g *group) About() string { return aboutSessions(len(g.Sessions), g.dollars) }

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

// Weekday returns the weekday of a group that is a day.
func (g *group) Weekday() time.Weekday {
	day, _ := time.Parse(time.DateOnly, g.Name)
	return day.Weekday()
}

// Index writes the first page of a site: a plot of the year, and all sessions by day, by project
// and by agent, those that cost most first.
func Index(w io.Writer, of Site) error {
	slices.SortFunc(of.Sessions, func(a, b Linked) int {
		return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(a.File, b.File))
	})
	days := grouped(of.Sessions, func(l *Linked) string { return l.Began.Local().Format(time.DateOnly) })
	projects := grouped(of.Sessions, func(l *Linked) string { return cmp.Or(l.Project, "No project") })
	agents := grouped(of.Sessions, func(l *Linked) string { return l.Agent })
	for _, groups := range [][]*group{projects, agents} {
		slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(b.dollars, a.dollars) })
	}
	_, err := io.WriteString(w, render("index.html", struct {
		Title, Index           string
		Facts                  []pageFact
		Plot                   *plot
		Days, Projects, Agents []*group
	}{"Sessions", "", []pageFact{
		{"Sessions", strconv.Itoa(len(of.Sessions))}, {"Projects", strconv.Itoa(len(projects))},
		{"Agents", strconv.Itoa(len(agents))}, {"Cost", of.Total}, {"Time zone", sessioncore.ZoneName()},
	}, plotOf(days, of.Days), days, projects, agents}))
	return err
}

const (
	// weeks is how many columns a plot has: those of a year.
	weeks = 53
	// cell is the distance of days in a plot, and margin the room for the names of weekdays and
	// months. index.html knows both.
	cell, margin = 13, 30
	// levels is how many colours a plot has.
	levels = 4
)

// plot is the year up to the last day as a calendar: a column for each week, darker where a day
// cost more, or, where nobody knows a cost, had more sessions.
type plot struct {
	What, Last string
	Days       []plotDay
}

type plotDay struct {
	Name, About, Month string // Month is "" but for the first day of one
	X, Y, Level        int
}

// plotOf returns the plot of days with sessions and of the cost of days, nil if there are none.
func plotOf(days []*group, dollars map[string]float64) *plot {
	p, number := &plot{What: "Sessions"}, map[string]float64{}
	for _, g := range days {
		number[g.Name], p.Last = float64(len(g.Sessions)), max(p.Last, g.Name)
	}
	value := number
	for day, cost := range dollars {
		if p.Last = max(p.Last, day); cost > 0 {
			p.What, value = "Cost", dollars
		}
	}
	end, err := time.Parse(time.DateOnly, p.Last)
	if err != nil {
		return nil
	}
	most, day := 0.0, end.AddDate(0, 0, -7*(weeks-1)-(int(end.Weekday())+6)%7)
	for n := 0; !day.After(end); n, day = n+1, day.AddDate(0, 0, 1) {
		name, month := day.Format(time.DateOnly), ""
		if day.Day() == 1 {
			month = day.Format("Jan")
		}
		about := aboutSessions(int(number[name]), dollars[name])
		p.Days = append(p.Days, plotDay{name, about, month, margin + n/7*cell, margin + n%7*cell, 0})
		most = max(most, value[name])
	}
	for i := range p.Days {
		if v := value[p.Days[i].Name]; v > 0 {
			p.Days[i].Level = min(levels, 1+int(levels*math.Sqrt(v/most)))
		}
	}
	return p
}
