package testdata

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"strings"
	"time"

	"sessionfs/sessioncore/history"
	sessionstorage "sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const historyName = "history.db"

// prompt is a line of the prompt history.
type prompt struct {
	Prompt, Cwd string
	CreatedAt   time.Time `json:"created_at"`
	SessionID   *string   `json:"session_id"`
}

// history checks that the prompt history has the prompts of the sessions, each once, and finds each by a word of it.
func (s *store) history() {
	data, err := fs.ReadFile(s.fsys, historyName)
	storage := memory.New()
	if err == nil {
		_, err = storage.Replace(historyName, sessionstorage.Replacement{Write: func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		}})
	}
	if err != nil {
		s.report(historyName, "%v", err)
		return
	}
	prompts := history.New(storage)
	find := func(match string) string {
		text, _, err := prompts.Render(context.Background(), match, nil)
		if err != nil {
			s.report(historyName, "%v", err)
		}
		return string(text)
	}
	asked := s.asked()
	for line := range strings.Lines(find("")) {
		var p prompt
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			s.report(historyName, "%v: %s", err, line)
			continue
		}
		session, ok := asked[p.Prompt]
		switch {
		case !ok:
			s.report(historyName, "nobody asked %q", p.Prompt)
			continue
		case session.header.Cwd != p.Cwd || p.SessionID != nil && *p.SessionID != session.header.ID:
			s.report(historyName, "%q was asked in another session", p.Prompt)
		case !strings.Contains(session.text, p.CreatedAt.Format("2006-01-02T15:04:05")):
			s.report(historyName, "%q was asked at another time", p.Prompt)
		}
		delete(asked, p.Prompt)
		if words := strings.Fields(p.Prompt); !strings.Contains(find(`"`+words[len(words)-1]+`"`), line) {
			s.report(historyName, "%q is not found", p.Prompt)
		}
	}
	for text := range asked {
		s.report(historyName, "does not know %q", text)
	}
}

// asked returns what users said, with the session in which they said it first.
func (s *store) asked() map[string]*session {
	asked := map[string]*session{}
	for name, session := range s.sessions {
		if strings.Count(name, "/") > 2 {
			continue // a subagent's
		}
		for _, e := range session.entries {
			if e.Message.Role != "user" {
				continue
			}
			text := textOf(e.Message.Content)
			if first := asked[text]; first == nil || session.header.Timestamp < first.header.Timestamp {
				asked[text] = session
			}
		}
	}
	return asked
}

// textOf returns the text of a message's content.
func textOf(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	var texts []string
	blocks, _ := content.([]any)
	for _, block := range blocks {
		if b, ok := block.(map[string]any); ok && b["type"] == "text" {
			texts = append(texts, b["text"].(string))
		}
	}
	return strings.Join(texts, "\n")
}
