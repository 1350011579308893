package codex

import (
	"bytes"
	"cmp"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// titles finds the title of a thread in the lines of its rollout: the one that the person gave, else the first line of the
// first prompt, as in the program.
type titles struct{ named, asked string }

// note notes the content of a line. A prompt behind a gap is not the first.
func (t *titles) note(payload rawjson.Value, isHead bool) {
	switch {
	case payload.Member("type").Is("thread_name_updated"):
		t.named, _ = payload.Member("thread_name").Text()
	case isHead && t.asked == "":
		t.asked = prompt(payload)
	}
}

// request is the heading before the prompt where an editor adds the person's view there.
const request = "## My request for Codex:"

// prompt returns the first line of the person's text in an item, "" if it is something else.
func prompt(payload rawjson.Value) string {
	var text string
	switch typ := payload.Member("type"); {
	case typ.Is("user_message"):
		text = asked(payload.Member("message"))
	case typ.Is("message") && payload.Member("role").Is("user") && !isContext(payload.Member("content")):
		text = asked(payload.Member("content"))
		payload.Member("content").EachElement(func(block rawjson.Value, _ int) bool {
			text = asked(block.Member("text"))
			return text == ""
		})
	}
	return text
}

// asked returns the first line of a prompt.
func asked(v rawjson.Value) string {
	text, _ := v.Text()
	if _, after, found := strings.Cut(text, request); found {
		text = after
	}
	return foreign.FirstLine(text)
}

// payloadOf returns the item in a line: all of it in the rollouts of mid-2025.
func payloadOf(v rawjson.Value) rawjson.Value {
	if payload := v.Member("payload"); payload.IsObject() {
		return payload
	}
	return v
}

// tells reports whether a line may say something about the session.
func tells(line []byte) bool {
	line = line[:min(len(line), 400)]
	for _, word := range [...]string{`"session_meta"`, `"thread_name_updated"`, `"user_message"`, `"user"`} {
		if bytes.Contains(line, []byte(word)) {
			return true
		}
	}
	return false
}

// titleOf returns the title of a rollout from which others go on: by the prompt at its beginning, or
// at that of its own base.
func (h *Home) titleOf(id string) (title string) {
	seen := map[string]bool{}
	for id != "" {
		name, _, ok := h.find(id)
		if !ok || seen[name] {
			break
		}
		h.mu.Lock()
		known, ok := h.prompts[name]
		h.mu.Unlock()
		if ok {
			title = known
			break
		}
		seen[name] = true
		asked, base, err := h.firstPrompt(name)
		if err != nil {
			break
		}
		title, id = cmp.Or(asked, title), base
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range seen {
		h.prompts[name] = title
	}
	return title
}

// firstPrompt returns the title that a rollout gives itself, and the rollout from which it goes on.
func (h *Home) firstPrompt(name string) (title, base string, err error) {
	obj, err := h.Open(name)
	if err != nil {
		return "", "", err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return "", "", err
	}
	var titles titles
	metas := 0
	note := func(v rawjson.Value) (more bool) {
		payload := payloadOf(v)
		if v.Member("type").Is("session_meta") {
			if metas++; metas == 1 {
				base, _ = payload.Member("history_base").Member("thread_id").Text()
			}
		}
		titles.note(payload, true)
		return titles.asked == "" && base == ""
	}
	more := true
	err = foreign.Head(obj, st.Size, tells, func(v rawjson.Value) { more = more && note(v) })
	if err == nil && more {
		err = foreign.Beyond(obj, st.Size, tells, note)
	}
	return titles.asked, base, err
}

// titled is a converter that finds the title of a session which has none in the program's list.
type titled struct {
	*converter
	begin  func(foreign.About) *converter
	home   *Home
	inList string // its title there
	titles titles
	metas  int
}

// Add implements foreign.Converter.
func (t *titled) Add(out []byte, v rawjson.Value, line int64) []byte {
	if tells(v) {
		payload := payloadOf(v)
		if v.Member("type").Is("session_meta") {
			if t.metas++; t.metas == 1 && t.inList == "" {
				thread, _ := payload.Member("id").Text()
				t.inList = t.home.title(thread)
			}
		}
		t.titles.note(payload, true)
	}
	return t.converter.Add(out, v, line)
}

// Title implements foreign.Titler.
func (t *titled) Title() string { return cmp.Or(t.inList, t.titles.named, t.titles.asked) }

// Again implements foreign.Rereader.
func (t *titled) Restart() foreign.Converter {
	about := t.About
	if about.Title = t.Title(); about.Title == t.About.Title {
		return nil
	}
	return &titled{converter: t.begin(about), begin: t.begin, home: t.home, inList: t.inList}
}
