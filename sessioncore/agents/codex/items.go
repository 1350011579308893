package codex

import (
	"net/url"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// toolEvents maps the type of an item to the type of the event with the same members.
var toolEvents = map[string]string{
	"CommandExecution": execEvent,
	"DynamicToolCall":  dynamicEvent,
	"FileChange":       patchEvent,
	"ImageGeneration":  madeImageEvent,
	"ImageView":        imageEvent,
	"McpToolCall":      mcpEvent,
}

// completed handles an item that is complete, in a record of size bytes. Newer clients write it in
// place of the event of its kind, and some write both. Items of other types change nothing.
func (c *converter) completed(item agents.Object, size int) {
	typ, _ := item.Member("type").Text()
	switch typ {
	case "UserMessage":
		content := item.Member("content")
		c.named(content)
		c.promptedBy(content)
		c.addItemText(person, agents.Quoted(agents.ChatText(content)))
	case "AgentMessage":
		for part := range item.Member("content").EachElement {
			c.addItemText(assistant, part.Member("text"))
		}
	case "Reasoning":
		for _, key := range [...]string{"summary_text", "raw_content"} {
			for text := range item.Member(key).EachElement {
				c.addItemText(thought, text)
			}
		}
	case "Plan":
		c.addItemText(plan, item.Member("text"))
	case "WebSearch":
		c.release(byPerson)
		c.searchResult(item.Member("id"), item, size)
	default:
		event := toolEvents[typ]
		if event != "" {
			c.release(byPerson)
			c.itemResult(item, event, size)
		}
	}
}

// addItemText adds the text of an item of the program, unless an event with it was first: then events are ahead, and the
// item only catches up. addEvent is the other side.
func (c *converter) addItemText(by speaker, text rawjson.Value) {
	said, _ := text.Bytes()
	hash := hashOf(by, said)
	c.itemsAhead[hash]++
	isFirst := c.itemsAhead[hash] > 0
	if isFirst {
		c.addText(by, text)
	}
}

// patchOf returns the arguments of a call of apply_patch that makes the changes of files.
func patchOf(changes rawjson.Value) rawjson.Value {
	var patch strings.Builder
	patch.WriteString("*** Begin Patch\n")
	for m := range changes.EachMember {
		path, _ := m.Key.Text()
		change := m.Value
		content, _ := change.Member("content").Text()
		kind := change.Member("type")
		switch {
		case kind.Is("add"):
			patch.WriteString("*** Add File: " + path + "\n")
			writeLines(&patch, "+", content)
		case kind.Is("delete"):
			patch.WriteString("*** Delete File: " + path + "\n")
			writeLines(&patch, "-", content)
		default:
			patch.WriteString("*** Update File: " + path + "\n")
			to, isMoved := change.AnyOf("move_path", "movePath").Text()
			if isMoved {
				patch.WriteString("*** Move to: " + to + "\n")
			}
			diff, _ := change.AnyOf("unified_diff", "unifiedDiff").Text()
			writeLines(&patch, "", diff)
		}
	}
	patch.WriteString("*** End Patch\n")
	arguments := []byte(`{"input":`)
	arguments = append(arguments, agents.Quoted(patch.String())...)
	return append(arguments, '}')
}

// writeLines writes the lines of a text, each behind a sign.
func writeLines(to *strings.Builder, sign, text string) {
	for line := range strings.Lines(text) {
		to.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// pathOf returns a path, also of a URL of a file. Other values and damaged URLs stay as they are.
func pathOf(v rawjson.Value) rawjson.Value {
	text, _ := v.Text()
	place, isURL := strings.CutPrefix(text, "file://")
	if !isURL {
		return v
	}
	path, err := url.PathUnescape(place)
	if err != nil {
		return v
	}
	isOfWindows := len(path) > 2 && path[0] == '/' && path[2] == ':' // as /C:/x
	if isOfWindows {
		path = path[1:]
	}
	return agents.Quoted(path)
}
