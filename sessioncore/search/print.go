package search

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/view"
)

// Printer prints hits, a line for each: on a terminal for people, elsewhere with tabs between fields.
type Printer struct {
	Out     *view.Screen
	Width   int            // of the terminal in columns; 0 for no limit
	JSON    bool           // objects, a line each
	Count   bool           // of sessions also how many hits each has
	Prompts bool           // on a terminal the prompt follows the text
	Marks   *regexp.Regexp // parts of the line of a hit that are highlighted; nil for none
	// Agent returns the name of the agent of a session.
	Agent func(*FileHits) string
	// Whole returns a hit with whole lines, which are printed where they are not for people.
	Whole func(*Hit) (Hit, error)
	// Around returns the entries around a hit, as hits; nil for none.
	Around func(*Hit) (before, after []Hit, err error)

	widest int // columns of the longest id
}

// Sessions prints the paths of sessions that have hits.
func (p *Printer) Sessions(all []*FileHits) {
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

// Hits prints hits. With entries around them "--" stands between two of them, as with grep.
func (p *Printer) Hits(hits []Hit) error {
	ids := shortIDs(hits)
	p.widest = 0
	for i := range hits {
		p.widest = max(p.widest, uniseg.StringWidth(idOf(&hits[i], ids)))
	}
	for i := range hits {
		h := &hits[i]
		if i > 0 && p.Around != nil {
			p.Out.WriteString("--\n")
		}
		err := p.hitAmong(h, ids)
		if err != nil {
			return err
		}
	}
	return nil
}

// hitAmong prints a hit with the entries around it.
func (p *Printer) hitAmong(h *Hit, ids map[string]string) (err error) {
	shown := *h
	if p.JSON || !p.Out.People {
		shown, err = p.Whole(h)
		if err != nil {
			return err
		}
	}
	var before, after []Hit
	if p.Around != nil {
		before, after, err = p.Around(h)
		if err != nil {
			return err
		}
	}
	for k := range before {
		p.hit(&before[k], ids, true)
	}
	p.hit(&shown, ids, false)
	for k := range after {
		p.hit(&after[k], ids, true)
	}
	return nil
}

// leastText is how many columns the text of a hit has at least. On a narrower terminal it stands below
// the others.
const leastText = 16

// hit prints a hit, or an entry around one.
func (p *Printer) hit(h *Hit, ids map[string]string, isAround bool) {
	switch {
	case p.JSON:
		p.Out.Write(h.AppendJSON(p.Out.AvailableBuffer()))
		return
	case !p.Out.People:
		p.Out.Write(h.AppendLine(p.Out.AvailableBuffer()))
		return
	}
	id := idOf(h, ids)
	about := fmt.Sprintf("%-6s  %s", p.Agent(h.FileHits), h.Time.Local().Format("2006-01-02 15:04"))
	between := "  "
	behind := between
	indent := p.widest + uniseg.StringWidth(about) + 2*len(between)
	isNarrow := p.Width > 0 && p.Width-indent < leastText
	if isNarrow { // id, facts and text have a line each
		between = "\n  "
		behind = between
		indent = len("  ")
	} else {
		missing := max(0, p.widest-uniseg.StringWidth(id))
		between = strings.Repeat(" ", missing) + between
	}
	colour := view.ColourPath
	if isAround {
		colour = view.ColourDim
	}
	text := p.text(h, p.Width-indent)
	if p.Out.Colours && p.Marks != nil && !isAround {
		text = p.Marks.ReplaceAllString(text, view.ColourMatch+"$0"+view.ColourEnd)
	}
	p.Out.WriteString(p.Out.Coloured(colour, id) + between + about + behind + text + "\n")
}

// callColumns is how many columns the calls of a hit have where no terminal tells its width.
const callColumns = 240

// text returns the text of a hit with its prompt in width columns; without a known width of the terminal only
// calls are bounded. A path of a call is never cut: rather, the prompt is left out.
func (p *Printer) text(h *Hit, width int) string {
	asked := ""
	if p.Prompts && h.Prompt != "" {
		asked = ", asked: " + names.VisibleLine(h.Prompt)
	}
	switch {
	case len(h.calls) > 0 && p.Width == 0:
		return fitCalls(h.calls, callColumns) + asked
	case len(h.calls) > 0:
		text := fitCalls(h.calls, width)
		left := width - uniseg.StringWidth(text)
		if left >= leastText {
			text += fitWords(asked, left, nil)
		}
		return text
	case p.Width == 0:
		return names.VisibleLine(h.Line) + asked
	}
	return fitWords(names.VisibleLine(h.Line)+asked, width, p.Marks)
}

// fitCalls returns the first calls, whole ones, as many as fit into so many columns, but one at least; an
// ellipsis stands for the others. There is at least one call.
func fitCalls(calls []string, width int) string {
	text := names.VisibleLine(calls[0])
	for i, call := range calls[1:] {
		more := text + callsBetween + names.VisibleLine(call)
		needed := uniseg.StringWidth(more)
		isLast := i == len(calls)-2
		if !isLast {
			needed++ // the ellipsis
		}
		if needed > width {
			return text + ellipsis
		}
		text = more
	}
	return text
}

// idOf returns the id of a hit for people: SESSION#ENTRY.
func idOf(h *Hit, ids map[string]string) string {
	if h.Entry == "" {
		return names.Visible(ids[h.ID])
	}
	return names.Visible(ids[h.ID]) + "#" + names.Visible(names.ShortID(h.Entry))
}

// shortIDs returns, by the ids of sessions with hits, beginnings that tell them apart. Where two have the same
// beginning, both are whole.
func shortIDs(hits []Hit) map[string]string {
	byShort := map[string]string{} // ids by their beginnings
	for i := range hits {
		id := hits[i].ID
		short := names.ShortID(id)
		other, isTaken := byShort[short]
		if isTaken && other != id {
			byShort[other] = other
			short = id
		}
		byShort[short] = id
	}
	ids := map[string]string{}
	for short, id := range byShort {
		if len(ids[id]) < len(short) { // one that became whole may have its short beginning, too
			ids[id] = short
		}
	}
	return ids
}

// fitWords returns the part of a text around a match that fits into so many columns, without parts
// of words. A word that is longer than all of them is cut.
func fitWords(text string, width int, marks *regexp.Regexp) string {
	rest, isCutBefore := strings.CutPrefix(text, "…")
	firstBlank := strings.IndexByte(rest, ' ')
	if isCutBefore && firstBlank >= 0 {
		rest = rest[firstBlank:]
	}
	whole, isCutAfter := strings.CutSuffix(rest, "…")
	lastBlank := strings.LastIndexByte(whole, ' ')
	if isCutAfter && lastBlank >= 0 {
		whole = whole[:lastBlank]
	}
	at := 0 // the offset of the match
	if marks != nil {
		found := marks.FindStringIndex(whole)
		if found != nil {
			at = found[0]
		}
	}
	words := strings.Fields(whole)
	upToMatch := strings.Fields(whole[:at] + ".") // the point stands for the beginning of the match
	match := max(0, len(upToMatch)-1)             // the index of its word
	ellipses := 2 * uniseg.StringWidth(ellipsis)
	first, last := wordsAround(words, match, width-ellipses)
	if last == first { // not even one word
		return view.CutAt(strings.Join(words[first:], " "), width)
	}
	shown := strings.Join(words[first:last], " ")
	if first > 0 || isCutBefore {
		shown = "…" + shown
	}
	if last < len(words) || isCutAfter {
		shown += "…"
	}
	return shown
}

// wordsAround returns the range of the words around one, at an index, that fit into so many columns: a few
// before it, for which a third of the columns is, then those behind it, then more before it. The range is
// empty where that word does not fit.
func wordsAround(words []string, at, width int) (first, last int) {
	first = at
	last = at
	left := width
	fits := func(i int) bool {
		isWord := i >= 0 && i < len(words)
		return isWord && uniseg.StringWidth(words[i]) <= left
	}
	take := func(i int) {
		left -= uniseg.StringWidth(words[i]) + len(" ")
	}
	if !fits(at) {
		return first, last
	}
	take(at)
	last++
	least := left - width/3
	for fits(first-1) && left-uniseg.StringWidth(words[first-1]) > least {
		first--
		take(first)
	}
	for fits(last) {
		take(last)
		last++
	}
	for fits(first - 1) {
		first--
		take(first)
	}
	return first, last
}
