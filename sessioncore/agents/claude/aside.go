package claude

import (
	"bytes"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file separates a person's words from the client's in records of the same kind, and makes
// entries of the client's records with words (docs/format-claude.md).

// The speakers of entries: the customType of a client's entry, "" for a person.
const (
	person = ""
	// meta is text for the model that the client does not show.
	meta = "claude/meta"
	// output is the output of a command that ran on this machine.
	output = "claude/output"
	// recap is the client's summary for a person coming back.
	recap = "claude/recap"
	// program is text for the model that the client puts in in the person's name.
	program = "claude/program"
)

// sayers are the tags with which the client begins its texts in records of a person.
var sayers = map[string]string{
	"local-command-caveat": meta, "task-notification": meta,
	"local-command-stdout": output, "local-command-stderr": output, "bash-stdout": output, "bash-stderr": output,
}

// sayerOf returns the speaker of content in a person's record. isMeta is the record's isMeta.
func sayerOf(content rawjson.Value, isMeta bool) string {
	text := content
	if content.IsArray() && bytes.Contains(content, []byte(`"<`)) { // a text of it begins with a tag
		for block := range content.EachElement {
			text = block.Member("text")
			break
		}
	}
	if tag, ok := bytes.CutPrefix(text, []byte(`"<`)); ok {
		tag, _, _ = bytes.Cut(tag[:min(len(tag), 64)], []byte(">"))
		if by, ok := sayers[string(tag)]; ok {
			return by
		}
	}
	switch {
	case isMeta:
		return meta
	case isPutInWhole(content):
		return program
	}
	return person
}

// aside adds the entry of a client's record with words outside the talk, if it is one.
func (c *converter) aside(r *record) bool {
	if r.typ.Is("attachment") {
		return c.mention(r)
	}
	if args := unknownArgs(r.Object); args != nil {
		c.addAside(r, func() { c.Asked("claude", args) })
		return true
	}
	content := r.Member("content")
	by := recap
	subtype := r.Member("subtype")
	switch {
	case !r.typ.Is("system") || !content.IsString() || content.Is(""):
		return false
	case subtype.Is("local_command"):
		by = output
	case !subtype.Is("away_summary"):
		return false
	}
	c.addAside(r, func() { c.NotSent(by, agents.Blocks(content)) })
	return true
}

// mention adds the entry of an attachment with a file or directory from a prompt, if it is one.
func (c *converter) mention(r *record) bool {
	attachment := agents.Read(r.Member("attachment"))
	kind := attachment.Member("type")
	content := attachment.Member("content")
	name := attachment.AnyOf("filename", "path")
	file := content.Member("file")
	if !name.IsString() {
		name = file.Member("filePath")
	}
	if !name.IsString() || !kind.Is("file") && !kind.Is("directory") {
		return false
	}
	var image agents.Blocks
	text := file.Member("content")
	switch {
	case content.IsString():
	case text.IsString():
		content = text
	default:
		if content.Member("type").Is("image") {
			image.Image(file.Member("type"), file.Member("base64"))
		}
		content = nil
		if image == nil {
			return false
		}
	}
	c.addAside(r, func() { c.Mention(name, content, image) })
	return true
}

// replace notes the results that the client sends in another form when it resumes the session.
func (c *converter) replace(r *record) {
	if !c.Side && !r.Member("agentId").Missing() {
		return // they are in a subagent's file
	}
	for v := range r.Member("replacements").EachElement {
		id, _ := v.Member("toolUseId").Text()
		if text := v.Member("replacement"); id != "" && text.IsString() {
			learn(c, c.learned.replaced, id, string(text))
		}
	}
}

// replacement returns the text that is sent in the place of a result's content, or nil.
func (c *converter) replacement(result agents.Object) rawjson.Value {
	if len(c.learned.replaced) == 0 {
		return nil
	}
	id, _ := result.Member("tool_use_id").Text()
	text, ok := c.learned.replaced[id]
	if !ok || string(result.Member("content")) == text {
		return nil
	}
	return rawjson.Value(text)
}
