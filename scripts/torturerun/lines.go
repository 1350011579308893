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
		s.add(bytes.TrimSuffix(text, []byte("\n")))
	}
	return s, err
}

// cutOffMark is the line that other programs write after one that a killed daemon has cut off.
const cutOffMark = "# the line above is cut off"

// add adds a line of the file.
func (s *session) add(text []byte) {
	if len(text) == 0 || string(text) == cutOffMark {
		return
	}
	l := line{text: text}
	err := json.Unmarshal(text, &l)
	switch {
	case err != nil:
		s.torn = append(s.torn, string(text))
	case l.Type == "session", l.Type == "title":
		if !s.titled { // the slot comes before the header
			s.titled = true
			s.title = l.Title
		}
	default:
		s.lines = append(s.lines, l)
	}
}

// leaf returns the id of the entry where the session stands: its last one, or the target of a recorded move. It is nil
// before the first entry.
func (s *session) leaf() *string {
	if len(s.lines) == 0 {
		return nil
	}
	last := s.lines[len(s.lines)-1]
	target, isMove := last.move()
	if isMove {
		return target
	}
	return new(last.ID)
}

// move returns the target of a recorded move of the leaf, nil for a move before the first entry. ok is false for other
// lines.
func (l *line) move() (target *string, ok bool) {
	if l.CustomType != "sessionfs/leaf" {
		return nil, false
	}
	var data struct{ TargetID *string }
	err := json.Unmarshal(l.Data, &data)
	return data.TargetID, err == nil
}

// labels returns the labels in effect, by the ids of their entries.
func (s *session) labels() map[string]string {
	labels := map[string]string{}
	for _, l := range s.lines {
		if l.Type != "label" {
			continue
		}
		isSet := l.Label != nil && *l.Label != ""
		if isSet {
			labels[l.TargetID] = *l.Label
		} else {
			delete(labels, l.TargetID)
		}
	}
	return labels
}

// words returns the text of an entry, "" for none.
func (l *line) words() string {
	if l.Message != nil && len(l.Message.Content) > 0 {
		return l.Message.Content[0].Text
	}
	var text string
	_ = json.Unmarshal(l.Data, &text)
	return text
}

// summary returns the program that wrote a line of the session name, and the line in the words of the model. who is ""
// for lines that do not tell it, which own sessions alone have. problem describes a line that is not whole, "" for
// another one.
func (l *line) summary(name string) (who, summary, problem string) {
	target, isMove := l.move()
	if isMove {
		if textOf(target) != textOf(l.ParentID) {
			problem = fmt.Sprintf("a move to %s is under %s", textOf(target), textOf(l.ParentID))
		}
		return "", "leaf " + textOf(target), problem
	}
	text := l.words()
	parent := under(name, l.ParentID)
	switch {
	case l.Type == "label" && l.Label != nil: // a label begins with the name of its program
		who, _, _ = strings.Cut(*l.Label, "-")
		summary = fmt.Sprintf("label %s of %s%s", *l.Label, l.TargetID, parent)
		return who, summary, ""
	case l.Type == "title_change":
		return "", "title " + l.Title, ""
	case strings.HasPrefix(text, "turn-") && l.Message != nil:
		return "r0", "turn " + l.Message.Role + " " + text, ""
	}
	if text != payload(l.ID, len(text)) {
		problem = fmt.Sprintf("the text of %s is not whole: %d bytes: %.100q", l.ID, len(text), text)
	}
	who, _, _ = strings.Cut(l.ID, "-") // so does the id of an entry
	summary = fmt.Sprintf("entry %s of %d%s", l.ID, len(text), parent)
	return who, summary, problem
}
