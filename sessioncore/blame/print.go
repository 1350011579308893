package blame

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/view"
)

// EditPrinter prints a file with its edits.
type EditPrinter struct {
	Out   *view.Screen
	Width int                    // of the terminal in columns; 0 for no limit
	Last  int                    // the greatest number of a line
	Edits []FileEdit             // the oldest first
	Agent func(*FileEdit) string // the name of the agent of an edit
	JSON  bool                   // lines are objects

	columns blameColumns
	above   int // the edit of the line above, where lines of an edit stand below it
}

// blameColumns are the widths of the columns before the text on a terminal.
type blameColumns struct {
	agent     int
	entry     int
	said      int // the title and the prompt
	number    int
	isStacked bool // the columns of an edit stand in a line above its lines
}

// leastSaid and mostSaid bound the columns of the title and the prompt of an edit. If fewer than leastSaid are
// left, an edit stands above its lines.
const (
	leastSaid = 6
	mostSaid  = 45
)

// noneAbove stands for no line above: it is no edit, nor Nobody.
const noneAbove = Nobody - 1

// layOut sets p.columns: half of the terminal is for the text. If the other half has no room for the title and the
// prompt, an edit stands above its lines.
func (p *EditPrinter) layOut() {
	c := blameColumns{number: len(fmt.Sprint(p.Last))}
	said := 0
	for i := range p.Edits {
		e := &p.Edits[i]
		c.agent = max(c.agent, uniseg.StringWidth(p.Agent(e)))
		c.entry = max(c.entry, uniseg.StringWidth(entryOf(e)))
		said = max(said, uniseg.StringWidth(saidOf(e)))
	}
	c.said = min(said, mostSaid)
	blanks := 3*len(" ") + 2*len("  ") // between the columns; see forPeople
	fixed := len("~2006-01-02") + c.agent + c.entry + c.number + blanks
	left := p.Width/2 - fixed
	if p.Width > 0 && left < c.said {
		c.said = left
		c.isStacked = left < leastSaid
	}
	p.columns = c
	p.above = noneAbove
}

// entryOf returns the id of an edit's entry, cut for people.
func entryOf(e *FileEdit) string { return names.VisibleLine(names.ShortID(e.Entry)) }

// saidOf returns "TITLE: PROMPT" of an edit, or one of both where the other is its beginning, as for a
// session without a title of its own.
func saidOf(e *FileEdit) string {
	title := names.VisibleLine(e.Session)
	prompt := names.VisibleLine(e.Prompt)
	begun := strings.TrimSuffix(title, "…")
	switch {
	case strings.HasPrefix(prompt, begun):
		return prompt
	case prompt == "" || strings.HasPrefix(title, strings.TrimSuffix(prompt, "…")):
		return title
	}
	return title + ": " + prompt
}

// Line prints the line with a number, which counts from 1, with its edit: on a terminal in columns,
// elsewhere with tabs between them.
func (p *EditPrinter) Line(number int, text string, line Line) {
	switch {
	case p.JSON:
		p.object(number, text, line)
	case p.Out.People:
		p.forPeople(number, names.VisibleExcept(text, "\t"), line)
	default:
		about := []string{"", "-", "", "", "", ""} // the columns of a line of Nobody's
		if line.Edit != Nobody {
			e := &p.Edits[line.Edit]
			about = []string{mark(line), e.When(), p.Agent(e), e.Title, e.Entry, e.Prompt}
		}
		columns := names.VisibleExcept(strings.Join(about, "\t"), "\t")
		fmt.Fprintf(p.Out, "%d\t%s\t%s\n", number, columns, text)
	}
}

// mark returns ~ for a line if only its text tells the edit, else "".
func mark(line Line) string {
	if line.Edit == Nobody || line.Exact {
		return ""
	}
	return "~"
}

// editColumns are the columns about an edit on a terminal.
type editColumns struct{ date, agent, entry, said string }

// columnsOf returns the columns about the edit of a line, with "-" as the date of Nobody's.
func (p *EditPrinter) columnsOf(line Line) editColumns {
	if line.Edit == Nobody {
		return editColumns{date: "-"}
	}
	e := &p.Edits[line.Edit]
	return editColumns{
		date:  e.Time.Local().Format(time.DateOnly),
		agent: p.Agent(e),
		entry: entryOf(e),
		said:  saidOf(e),
	}
}

// forPeople prints a line on a terminal, with its edit before it, or above it unless the line above has the same.
func (p *EditPrinter) forPeople(number int, text string, line Line) {
	if p.columns.number == 0 {
		p.layOut()
	}
	width := p.columns
	edit := p.columnsOf(line)
	if !width.isStacked {
		agent := padded(edit.agent, width.agent)
		entry := padded(edit.entry, width.entry)
		said := padded(view.CutAt(edit.said, width.said), width.said)
		about := fmt.Sprintf("%1s%-10s %s %s  %s  %*d", mark(line), edit.date, agent, entry, said, width.number, number)
		fmt.Fprintf(p.Out, "%s %s\n", p.Out.Coloured(view.ColourPath, about), text)
		return
	}
	if line.Edit != p.above {
		p.printAbove(edit)
		p.above = line.Edit
	}
	fmt.Fprintf(p.Out, "%1s%*d %s\n", mark(line), width.number, number, text)
}

// printAbove prints the columns about an edit in a line of its own, cut at the width of the terminal.
func (p *EditPrinter) printAbove(edit editColumns) {
	about := strings.TrimRight(edit.date+" "+edit.agent+" "+edit.entry, " ")
	left := p.Width - uniseg.StringWidth(about) - len(" ")
	about += " " + view.CutAt(edit.said, max(left, leastSaid))
	about = strings.TrimRight(about, " ")
	p.Out.WriteString(p.Out.Coloured(view.ColourPath, about) + "\n")
}

// padded returns a text with blanks behind it, up to a width in columns.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
}

// rangeSaid bounds the columns of the title and the prompt of a range of lines.
const rangeSaid = 240

// Ranges prints the edits of the lines from a number on without their texts: a row for each range of lines
// with the same edit, with tabs between its columns. These are the numbers, the time after ~ or nothing,
// the agent, the ids of session and entry with # between them, and the title with the prompt.
func (p *EditPrinter) Ranges(from int, lines []Line) {
	for begin := 0; begin < len(lines); {
		end := begin + 1
		for end < len(lines) && lines[end] == lines[begin] {
			end++
		}
		numbers := fmt.Sprint(from + begin)
		if end > begin+1 {
			numbers = fmt.Sprintf("%d-%d", from+begin, from+end-1)
		}
		said := "-"
		line := lines[begin]
		if line.Edit != Nobody {
			said = p.rangeColumns(line)
		}
		fmt.Fprintf(p.Out, "%s\t%s\n", numbers, said)
		begin = end
	}
}

// rangeColumns returns the columns about the edit of a range of lines.
func (p *EditPrinter) rangeColumns(line Line) string {
	e := &p.Edits[line.Edit]
	columns := []string{
		mark(line) + e.Time.Local().Format("2006-01-02 15:04"),
		p.Agent(e),
		names.VisibleLine(names.ShortID(e.ID)) + "#" + entryOf(e),
		view.CutAt(saidOf(e), rangeSaid),
	}
	return strings.Join(columns, "\t")
}

// editJSON has the members of a line's object that are about its edit.
type editJSON struct {
	Time    string `json:"time"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Entry   string `json:"entry"`
	Prompt  string `json:"prompt"`
	Exact   bool   `json:"exact"`
}

// object prints a line as an object of JSON.
func (p *EditPrinter) object(number int, text string, line Line) {
	object := struct {
		Line int    `json:"line"`
		Text string `json:"text"`
		*editJSON
	}{Line: number, Text: text}
	if line.Edit != Nobody {
		e := &p.Edits[line.Edit]
		object.editJSON = &editJSON{
			Time:    e.When(),
			Agent:   p.Agent(e),
			Session: e.Title,
			Entry:   e.Entry,
			Prompt:  e.Prompt,
			Exact:   line.Exact,
		}
	}
	p.Out.Write(rawjson.AppendLine(p.Out.AvailableBuffer(), object))
}

// Diffs prints the edits as diffs of the file name below their prompts, the newest first.
func (p *EditPrinter) Diffs(name string) {
	for i, e := range slices.Backward(p.Edits) {
		if i < len(p.Edits)-1 {
			p.Out.WriteString("\n")
		}
		by := e.Time.Local().Format("2006-01-02 15:04:05") + " by " + p.Agent(&e)
		p.Out.WriteString(e.Diff(name, by))
	}
}
