package codex

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// titles finds the title of a thread in the lines of its rollout, else the first prompt.
type titles struct {
	name, prompt string
	metas        int    // number of lines of type session_meta at the beginning
	thread, base string // of the first one: its thread, and the one that it continues
}

// add adds a line. A prompt behind a gap is not the first.
func (t *titles) add(v rawjson.Value, isHead bool) {
	payload := payloadOf(v)
	if isHead && v.Member("type").Is("session_meta") {
		if t.metas++; t.metas == 1 {
			t.thread, _ = payload.Member("id").Text()
			t.base, _ = payload.Member("history_base").Member("thread_id").Text()
		}
	}
	switch {
	case payload.Member("type").Is("thread_name_updated"):
		t.name, _ = payload.Member("thread_name").Text()
	case isHead && t.prompt == "":
		t.prompt = prompt(payload)
	}
}

// request is the heading of the prompt if an editor adds the person's view before it.
const request = "## My request for Codex:"

// prompt returns the first line of the person's text in an item, or "".
func prompt(payload rawjson.Value) string {
	var text string
	switch typ := payload.Member("type"); {
	case typ.Is("user_message"):
		text = firstLine(payload.Member("message"))
	case typ.Is("message") && payload.Member("role").Is("user") && !isContext(payload.Member("content")):
		text = firstLine(payload.Member("content"))
		payload.Member("content").EachElement(func(block rawjson.Value, _ int) bool {
			text = firstLine(block.Member("text"))
			return text == ""
		})
	}
	return text
}

// firstLine returns the first line of a prompt.
func firstLine(v rawjson.Value) string {
	text, _ := v.Text()
	if _, after, found := strings.Cut(text, request); found {
		text = after
	}
	return agents.FirstLine(text)
}

// payloadOf returns the item in a line, which is all of a line of mid-2025.
func payloadOf(v rawjson.Value) rawjson.Value {
	if payload := v.Member("payload"); payload.IsObject() {
		return payload
	}
	return v
}

// mayHaveFacts reports whether a line may have the title or the parent of the session.
func mayHaveFacts(line []byte) bool {
	line = line[:min(len(line), 400)]
	words := []string{`"session_meta"`, `"thread_name_updated"`, `"user_message"`, `"user"`}
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(line, []byte(word)) })
}

// titleOf returns the title of a rollout that others continue, from a prompt in it or its base.
func (h *Home) titleOf(id string) (title string) {
	visited := map[string]bool{}
	for id != "" {
		name, _, ok := h.find(id)
		if !ok || visited[name] {
			break
		}
		h.mu.Lock()
		known, ok := h.prompts[name]
		h.mu.Unlock()
		if ok {
			title = known
			break
		}
		visited[name] = true
		prompt, base, err := h.firstPrompt(name)
		if err != nil {
			break
		}
		title, id = cmp.Or(prompt, title), base
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range visited {
		h.prompts[name] = title
	}
	return title
}

// firstPrompt returns the first prompt in a rollout, and the rollout that it continues.
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
	add := func(v rawjson.Value) (more bool) {
		titles.add(v, true)
		return titles.prompt == "" && titles.base == ""
	}
	more := true
	err = agents.Head(obj, st.Size, mayHaveFacts, func(v rawjson.Value) { more = more && add(v) })
	if err == nil && more {
		err = agents.Beyond(obj, st.Size, mayHaveFacts, add)
	}
	return titles.prompt, titles.base, err
}

// titleFinder is a converter that finds the title of a session without one in the program's list.
type titleFinder struct {
	*converter
	begin     func(agents.About) *converter
	home      *Home
	listTitle string // the title in the list
	titles    titles
}

// Add implements agents.Converter.
func (t *titleFinder) Add(out []byte, v rawjson.Value, line int64) []byte {
	if mayHaveFacts(v) {
		before := t.titles.metas
		if t.titles.add(v, true); before == 0 && t.titles.metas == 1 && t.listTitle == "" {
			t.listTitle = t.home.title(t.titles.thread)
		}
	}
	return t.converter.Add(out, v, line)
}

// Title implements agents.Titler.
func (t *titleFinder) Title() string { return cmp.Or(t.listTitle, t.titles.name, t.titles.prompt) }

// Restart implements agents.Rereader.
func (t *titleFinder) Restart() agents.Converter {
	about := t.About
	if about.Title = t.Title(); about.Title == t.About.Title {
		return nil
	}
	return &titleFinder{converter: t.begin(about), begin: t.begin, home: t.home, listTitle: t.listTitle}
}
