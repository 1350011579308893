package view

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/rivo/uniseg"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/report"
)

// Log is the tree of a session as lines, in the order of report.Log.
type Log struct {
	Session *sessioncore.Snapshot
	All     bool // every entry, also results of tools and changes of settings
	Most    uint // how many entries; 0 for all
}

// errEnough ends a log at its limit.
var errEnough = errors.New("enough entries")

// lines calls each with the lines of a log, up to the limit of entries.
func (l *Log) lines(ctx context.Context, each func(*report.LogLine) error) error {
	entries := uint(0)
	err := report.Log(ctx, l.Session, l.All, func(line *report.LogLine) error {
		if line.Entry != sessioncore.NoEntry {
			entries++
			if l.Most > 0 && entries > l.Most {
				return errEnough
			}
		}
		return each(line)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// logObject is an entry of a log as JSON.
type logObject struct {
	ID string `json:"id"` // of the session
	*logEntry
}

// logEntry has the members about an entry.
type logEntry struct {
	Entry  string   `json:"entry"`
	Parent string   `json:"parent,omitempty"`
	Time   string   `json:"time"`
	What   string   `json:"what"`
	Marks  []string `json:"marks"`
	Text   string   `json:"text"`
}

// WriteJSON writes an object a line for each entry. A session without entries is one with the key id
// alone.
func (l *Log) WriteJSON(ctx context.Context, out io.Writer) error {
	header, _, err := l.Session.ReadHeader()
	if err != nil {
		return err
	}
	id, _ := header.Member("id").Text()
	isEmpty := true
	err = l.lines(ctx, func(line *report.LogLine) error {
		if line.Entry == sessioncore.NoEntry { // a line of the drawing
			return nil
		}
		isEmpty = false
		object := logObject{ID: id, logEntry: l.entryOf(line)}
		_, err := out.Write(rawjson.AppendLine(nil, object))
		return err
	})
	if err == nil && isEmpty {
		_, err = out.Write(rawjson.AppendLine(nil, logObject{ID: id}))
	}
	return err
}

// entryOf returns the members about the entry of a line.
func (l *Log) entryOf(line *report.LogLine) *logEntry {
	entryTime := l.Session.Time(line.Entry).UTC()
	e := &logEntry{
		Entry: l.Session.Name(line.Entry),
		Time:  entryTime.Format(rawjson.TimestampLayout),
		What:  line.What,
		Marks: append([]string{}, line.Marks...), // an empty list, not null
		Text:  line.Said,
	}
	if line.Above != sessioncore.NoEntry {
		e.Parent = l.Session.Name(line.Above)
	}
	return e
}

// narrowLog is the width below which the words of an entry stand below its id and time.
const narrowLog = 60

// WriteText writes the lines with their drawing, cut at so many columns, 0 for no limit. Ids are never
// cut.
func (l *Log) WriteText(ctx context.Context, out *Screen, width int) error {
	return l.lines(ctx, func(line *report.LogLine) error {
		return l.writeLine(out, width, line)
	})
}

// writeLine writes a line of the log: one row, or in a narrow terminal one for each part of an entry.
func (l *Log) writeLine(out *Screen, width int, line *report.LogLine) error {
	if line.Entry == sessioncore.NoEntry {
		return l.writeRow(out, width, line.Graph)
	}
	id := names.Visible(line.ID)
	marks := ""
	if len(line.Marks) > 0 {
		marks = names.Visible("(" + strings.Join(line.Marks, ", ") + ")")
	}
	entryTime := l.Session.Time(line.Entry).Local().Format(dateLayout)
	said := names.Visible(line.What + ": " + line.Said)
	isNarrow := width > 0 && width < narrowLog
	if !isNarrow {
		return l.writeRow(out, width, line.Graph, id, marks, entryTime+" "+said)
	}
	err := l.writeRow(out, width, line.Graph, id, "", entryTime)
	if err != nil {
		return err
	}
	if marks != "" {
		err = l.writeRow(out, width, below(line), "", marks)
		if err != nil {
			return err
		}
	}
	return l.writeRow(out, width, below(line), "", "", said)
}

// below returns the drawing below the drawing of an entry.
func below(line *report.LogLine) string {
	if line.Above == sessioncore.NoEntry {
		return strings.Replace(line.Graph, "*", " ", 1)
	}
	return strings.Replace(line.Graph, "*", "|", 1)
}

// writeRow writes the parts of a row in their colours: the drawing, the id, the marks and the text, cut at width
// columns, 0 for no limit. Parts may be "", and the last ones may be left out.
func (l *Log) writeRow(out *Screen, width int, parts ...string) error {
	const idPart = 1 // an id is not cut
	colours := []string{"", ColourName, ColourMatch, ""}
	text := ""
	left := width
	for i, part := range parts {
		if i > 0 && part != "" {
			text += " "
			left--
		}
		if width > 0 && i != idPart {
			part = CutAt(part, left)
		}
		left -= uniseg.StringWidth(part)
		text += out.Coloured(colours[i], part)
	}
	_, err := out.WriteString(strings.TrimRight(text, " ") + "\n")
	return err
}
