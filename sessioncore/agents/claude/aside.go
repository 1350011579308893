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

// sayers has the speakers of the client's texts in records of a person, by the tag at the beginning of the text.
var sayers = map[string]string{
	"local-command-caveat": meta,
	"task-notification":    meta,
	"local-command-stdout": output,
	"local-command-stderr": output,
	"bash-stdout":          output,
	"bash-stderr":          output,
}

// maxSayer bounds the search for the end of a tag, in bytes; no tag in sayers is longer.
const maxSayer = 64

// sayerOf returns the speaker of content in a person's record. isMeta is the record's isMeta.
func sayerOf(content rawjson.Value, isMeta bool) string {
	speaker, isTagged := sayerOfTag(firstText(content))
	switch {
	case isTagged:
		return speaker
	case isMeta:
		return meta
	case isPutInWhole(content):
		return program
	}
	return person
}

// firstText returns content that is a text, or the text of its first block if a text in it may begin with a tag. It
// returns another value if there is none.
func firstText(content rawjson.Value) rawjson.Value {
	if !content.IsArray() || !bytes.Contains(content, []byte(`"<`)) {
		return content
	}
	for block := range content.EachElement {
		return block.Member("text")
	}
	return content
}

// sayerOfTag returns the speaker of a text that begins with a tag of sayers. ok is false for other texts.
func sayerOfTag(text rawjson.Value) (speaker string, ok bool) {
	inner, isTag := bytes.CutPrefix(text, []byte(`"<`))
	if !isTag {
		return "", false
	}
	inner = inner[:min(len(inner), maxSayer)]
	name, _, _ := bytes.Cut(inner, []byte(">"))
	speaker, ok = sayers[string(name)]
	return speaker, ok
}

// aside adds the entry of a client's record with words outside the talk. It returns false for other records.
func (c *converter) aside(r *record) bool {
	if r.typ.Is("attachment") {
		return c.mention(r)
	}
	args := unknownArgs(r.Object)
	if args != nil {
		c.addAside(r, func() { c.Asked(Name, args) })
		return true
	}
	content := r.Member("content")
	if !r.typ.Is("system") || !content.IsString() || content.Is("") {
		return false
	}
	speaker := ""
	subtype := r.Member("subtype")
	switch {
	case subtype.Is("local_command"):
		speaker = output
	case subtype.Is("away_summary"):
		speaker = recap
	default:
		return false
	}
	c.addAside(r, func() { c.NotSent(speaker, agents.Blocks(content)) })
	return true
}

// mention adds the entry of an attachment with a file or directory from a prompt. It returns false for others.
func (c *converter) mention(r *record) bool {
	attachment := agents.Read(r.Member("attachment"))
	kind := attachment.Member("type")
	if !kind.Is("file") && !kind.Is("directory") {
		return false
	}
	content := attachment.Member("content")
	file := content.Member("file")
	name := attachment.AnyOf("filename", "path")
	if !name.IsString() {
		name = file.Member("filePath")
	}
	if !name.IsString() {
		return false
	}
	var image agents.Blocks
	text := file.Member("content")
	switch {
	case content.IsString():
		text = content
	case text.IsString():
	case content.Member("type").Is("image"):
		image.Image(file.Member("type"), file.Member("base64"))
		text = nil
	}
	if !text.IsString() && image == nil {
		return false
	}
	c.addAside(r, func() { c.Mention(name, text, image) })
	return true
}

// replace learns of the results that the client sends in another form when it resumes the session.
func (c *converter) replace(r *record) {
	if !c.Side && !r.Member("agentId").Missing() {
		return // they are in a subagent's file
	}
	for v := range r.Member("replacements").EachElement {
		id, _ := v.Member("toolUseId").Text()
		text := v.Member("replacement")
		if id != "" && text.IsString() {
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
	text, isReplaced := c.learned.replaced[id]
	isSame := string(result.Member("content")) == text
	if !isReplaced || isSame {
		return nil
	}
	return rawjson.Value(text)
}
