package blame

import (
	"fmt"
	"slices"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/view"
)

// Printer prints a file with its edits.
type Printer struct {
	Out   *view.Screen
	Edits []Edit             // the oldest first
	Agent func(*Edit) string // the name of the agent of an edit
	JSON  bool               // lines are objects
}

// Line prints the line of a number, which counts from 1: on a terminal in columns, elsewhere with
// tabs between them.
func (p *Printer) Line(number int, text string, line Line) {
	if p.JSON {
		p.object(number, text, line)
		return
	}
	columns := []any{"", "-", "", "", "", ""}
	date := "-"
	if line.Edit != Nobody {
		e := &p.Edits[line.Edit]
		columns = []any{"", e.When(), p.Agent(e), e.Session, e.Entry, e.Prompt}
		if !line.Exact {
			columns[0] = "~"
		}
		date = e.Time.Local().Format(time.DateOnly)
	}
	if !p.Out.People {
		said := fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", columns...)
		fmt.Fprintf(p.Out, "%d\t%s\t%s\n", number, names.VisibleExcept(said, "\t"), text)
		return
	}
	columns[1] = date
	said := names.VisibleLine(fmt.Sprintf("%1s%-10s %-7.7s %-20.20s %-8.8s %-24.24s", columns...))
	fmt.Fprintf(p.Out, "%s%5d  %s", p.Out.Coloured(view.ColourPath, said), number, names.VisibleExcept(text, "\t")+"\n")
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

func (p *Printer) object(number int, text string, line Line) {
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
			Session: e.Session,
			Entry:   e.Entry,
			Prompt:  e.Prompt,
			Exact:   line.Exact,
		}
	}
	p.Out.Write(rawjson.AppendLine(p.Out.AvailableBuffer(), object))
}

// Diffs prints the edits as diffs of the file name below their prompts, the newest first.
func (p *Printer) Diffs(name string) {
	for i, e := range slices.Backward(p.Edits) {
		if i < len(p.Edits)-1 {
			p.Out.WriteString("\n")
		}
		by := e.Time.Local().Format("2006-01-02 15:04:05") + " by " + p.Agent(&e)
		p.Out.WriteString(e.Diff(name, by))
	}
}
