package codex

import (
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// titleFacts are found in the records at the beginning of a session.
type titleFacts struct {
	home     *Home
	isTitled bool   // the program's list has the title
	allMetas int    // number of session_meta
	parent   string // the thread that it was forked from, or that called it as a subagent
	side     bool   // it is a subagent's or a reviewer's
}

// meta handles a session_meta.
func (c *converter) meta(p agents.Object) {
	id, _ := p.Member("id").Text()
	c.allMetas++
	switch c.allMetas {
	case 1:
		c.parent, c.side = parentOf(p, c.ID)
		c.titled(id) // a reverted thread continues in another file
	case 2: // of the original: its records follow as copies
		if id != c.ID && c.parent == "" {
			c.parent = id
		}
	}
}

// parentOf returns the parent thread of a fork or subagent, "" for none, and whether it is a subagent. own is the
// thread's own id. The first one named counts, else the session that was handed over.
func parentOf(meta agents.Object, own string) (parent string, side bool) {
	kind := subagentOf(meta)
	side = len(kind) > 0
	named := []rawjson.Value{
		meta.Member("history_base").Member("thread_id"),
		meta.Member("forked_from_id"),
		meta.Member("parent_thread_id"),
		kind.Member("parent_thread_id"),
	}
	for m := range kind.EachMember { // thread_spawn and others
		named = append(named, m.Value.Member("parent_thread_id"))
	}
	for _, v := range named {
		id, _ := v.Text()
		if id != "" && id != own {
			return id, side
		}
	}
	return agents.OriginIn(meta, own), side
}

// subagentOf returns the kind of the subagent or reviewer that owns a session_meta, nil for a person's thread.
func subagentOf(meta agents.Object) rawjson.Value {
	source := meta.Member("source")
	kind := agents.Read(source).AnyOf("subagent", "internal")
	switch {
	case !kind.Missing():
		return kind
	case source.Is("subagent"), meta.Member("thread_source").Is("subagent"):
		return rawjson.Value(`"subagent"`)
	}
	return nil
}

// titled sets the title that the program's list has for a thread, if any. It stays.
func (c *converter) titled(thread string) {
	if !c.isTitled {
		title := c.home.title(thread)
		c.Named(title)
		c.isTitled = title != ""
	}
}

// goalCommand begins the person's words where the person sets a goal.
const goalCommand = "/goal "

// promptedBy adds the person's words in a message as a prompt, and keeps their hash to find a goal that they set.
func (c *converter) promptedBy(content rawjson.Value) {
	text := personsText(content)
	words := strings.TrimPrefix(strings.TrimSpace(text), goalCommand)
	c.prompted = hashOf(person, []byte(words))
	c.Prompted(text)
}

// personsText returns the texts of a message without the program's, nor an editor's before a request.
func personsText(content rawjson.Value) string {
	whole := imageTag.ReplaceAllString(agents.ChatText(content), "")
	request, isFound := requestIn(whole)
	if isFound {
		return request
	}
	var all strings.Builder
	add := func(v rawjson.Value) {
		said, _ := v.Text()
		words, isWrapped := typed(said)
		if isWrapped {
			said = words
		}
		all.WriteString(said)
	}
	add(content)
	for block := range content.EachElement {
		add(block.Member("text"))
	}
	return imageTag.ReplaceAllString(all.String(), "")
}

// maxFactStart is the part of a line that has the types of its record, in bytes.
const maxFactStart = 400

// hasFacts reports whether a line may have facts for a list.
func hasFacts(line []byte) bool {
	start := line[:min(len(line), maxFactStart)]
	return agents.HasAny(start, `"session_meta"`, `"user_message"`, `"user"`, `"thread_name_updated"`, `"UserMessage"`,
		`"thread_goal_updated"`, `"task_started"`)
}
