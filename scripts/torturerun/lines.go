package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// line is a line of a session file.
type line struct {
	Type, CustomType, ID, TargetID, Title string
	ParentID                              *string
	Label                                 *string
	Data                                  json.RawMessage
	Message                               *struct {
		Role    string
		Content []struct{ Text string }
	}
	text []byte
}

// session is a session file, read without the program under test.
type session struct {
	lines  []line
	titled bool
	title  string   // the slot's, else the header's
	torn   []string // lines that cannot be read
}

// readSession reads a session file. After an error it is empty.
func readSession(file string) (*session, error) {
	data, err := os.ReadFile(file)
	s := &session{}
	for text := range bytes.Lines(data) {
		l := line{text: bytes.TrimSuffix(text, []byte("\n"))}
		switch err := json.Unmarshal(l.text, &l); {
		case len(l.text) == 0, string(l.text) == "# the line above is cut off":
		case err != nil:
			s.torn = append(s.torn, string(l.text))
		case l.Type == "session", l.Type == "title":
			if !s.titled {
				s.titled = true
				s.title = l.Title
			}
		default:
			s.lines = append(s.lines, l)
		}
	}
	return s, err
}

// leaf is where the session stands: at its last entry, or where a recorded move leads.
func (s *session) leaf() *string {
	if len(s.lines) == 0 {
		return nil
	}
	last := s.lines[len(s.lines)-1]
	if target, ok := last.move(); ok {
		return target
	}
	return new(last.ID)
}

// move is the target of a recorded move of the leaf.
func (l *line) move() (target *string, ok bool) {
	if l.CustomType != "sessionfs/leaf" {
		return nil, false
	}
	var data struct{ TargetID *string }
	err := json.Unmarshal(l.Data, &data)
	return data.TargetID, err == nil
}

// labels are those in effect.
func (s *session) labels() map[string]string {
	labels := map[string]string{}
	for _, l := range s.lines {
		if l.Type == "label" && l.Label != nil && *l.Label != "" {
			labels[l.TargetID] = *l.Label
		} else if l.Type == "label" {
			delete(labels, l.TargetID)
		}
	}
	return labels
}

// words are the text of an entry.
func (l *line) words() string {
	if l.Message != nil && len(l.Message.Content) > 0 {
		return l.Message.Content[0].Text
	}
	var text string
	_ = json.Unmarshal(l.Data, &text)
	return text
}

// summary says who wrote a line, and what it is, in the words of the model. The problem is that of a line that is not
// whole.
func (l *line) summary(name string) (who, summary, problem string) {
	if target, ok := l.move(); ok {
		if textOf(target) != textOf(l.ParentID) {
			problem = fmt.Sprintf("a move to %s is under %s", textOf(target), textOf(l.ParentID))
		}
		return "", "leaf " + textOf(target), problem
	}
	switch {
	case l.Type == "label" && l.Label != nil:
		who, _, _ = strings.Cut(*l.Label, "-")
		return who, fmt.Sprintf("label %s of %s%s", *l.Label, l.TargetID, under(name, l.ParentID)), ""
	case l.Type == "title_change":
		return "", "title " + l.Title, ""
	case strings.HasPrefix(l.words(), "turn-") && l.Message != nil:
		return "r0", "turn " + l.Message.Role + " " + l.words(), ""
	}
	text := l.words()
	if text != payload(l.ID, len(text)) {
		problem = fmt.Sprintf("the text of %s is not whole: %d bytes: %.100q", l.ID, len(text), text)
	}
	who, _, _ = strings.Cut(l.ID, "-")
	return who, fmt.Sprintf("entry %s of %d%s", l.ID, len(text), under(name, l.ParentID)), problem
}
