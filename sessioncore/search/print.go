package search

import (
	"fmt"
	"regexp"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/view"
)

// Printer prints hits: on a terminal those of a session together below its name, elsewhere a line
// for each.
type Printer struct {
	Out   *view.Screen
	JSON  bool           // objects, a line each
	Count bool           // of sessions also how many hits each has
	Marks *regexp.Regexp // parts of the line of a hit that are highlighted; nil for none
}

// Sessions prints the paths of sessions that have hits.
func (p *Printer) Sessions(all []*Found) {
	for _, s := range all {
		dir := names.Visible(s.Directory())
		switch {
		case p.JSON:
			p.Out.Write(s.AppendJSON(p.Out.AvailableBuffer()))
		case p.Count:
			fmt.Fprintf(p.Out, "%s\t%d\n", dir, s.Count)
		default:
			p.Out.WriteString(dir + "\n")
		}
	}
}

// Hits prints hits.
func (p *Printer) Hits(hits []Hit) {
	of := map[string][]*Hit{}
	var sessions []string
	for i := range hits {
		switch dir := hits[i].Directory(); {
		case p.JSON:
			p.Out.Write(hits[i].AppendJSON(p.Out.AvailableBuffer()))
		case !p.Out.People:
			p.Out.Write(hits[i].AppendLine(p.Out.AvailableBuffer()))
		default:
			if of[dir] == nil {
				sessions = append(sessions, dir)
			}
			of[dir] = append(of[dir], &hits[i])
		}
	}
	for i, dir := range sessions {
		if i > 0 {
			p.Out.WriteString("\n")
		}
		p.Out.WriteString(p.Out.Coloured(view.ColourTitle, names.VisibleLine(of[dir][0].Session)) + "\n")
		for _, h := range of[dir] {
			p.hit(h)
		}
	}
}

// hit prints a hit for reading: its path, time, kind and line.
func (p *Printer) hit(h *Hit) {
	p.Out.WriteString(p.Out.Coloured(view.ColourPath, names.VisibleLine(h.Path())) + "\n")
	p.Out.WriteString("  " + h.Time.Local().Format("2006-01-02 15:04:05") + "  " + names.Visible(h.What))
	if h.Copies > 0 {
		fmt.Fprintf(p.Out, "  (copied by %d)", h.Copies)
	}
	line := names.VisibleLine(h.Line)
	if p.Out.Colours && p.Marks != nil {
		line = p.Marks.ReplaceAllString(line, view.ColourMatch+"$0"+view.ColourEnd)
	}
	p.Out.WriteString("\n    " + line + "\n")
	if h.Prompt != "" {
		p.Out.WriteString("    asked: " + names.VisibleLine(h.Prompt) + "\n")
	}
}
