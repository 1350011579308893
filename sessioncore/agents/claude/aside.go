package claude

import (
	"bytes"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file separates a person's words from the client's in records of the same kind, and makes
// entries of the client's records with words (docs/format.md, Claude Code).

// sayer is the speaker of an entry: the customType of a client's entry, "" for a person.
type sayer string

const (
	person sayer = ""
	// meta is text for the model that the client does not show.
	meta sayer = "claude/meta"
	// output is the output of a command that ran on this machine.
	output sayer = "claude/output"
	// recap is the client's summary for a person coming back.
	recap sayer = "claude/recap"
)

// sayers are the tags with which the client begins its texts in records of a person.
var sayers = map[string]sayer{
	"local-command-caveat": meta, "task-notification": meta,
	"local-command-stdout": output, "local-command-stderr": output, "bash-stdout": output, "bash-stderr": output,
}

// sayerOf returns the speaker of content in a person's record. isMeta is the record's isMeta.
func sayerOf(content rawjson.Value, isMeta bool) sayer {
	text := content
	if !bytes.Contains(content, []byte(`"<`)) {
		content = nil // no text of it begins with a tag
	}
	content.EachElement(func(block rawjson.Value, _ int) bool {
		text = block.Member("text")
		return false
	})
	if tag, ok := bytes.CutPrefix(text, []byte(`"<`)); ok {
		tag, _, _ = bytes.Cut(tag[:min(len(tag), 64)], []byte(">"))
		if by, ok := sayers[string(tag)]; ok {
			return by
		}
	}
	if isMeta {
		return meta
	}
	return person
}

// saying returns the entry of a part of a record with texts and images.
func (c *converter) saying(r *record, part int, content []byte, by sayer) agents.Entry {
	if by != person {
		return c.custom(r, part, content, by)
	}
	body := append(append(c.body, `"message":{"role":"user","content":`...), content...)
	return entryOf(r, part, append(agents.AppendMillis(body, r.time()), '}'))
}

func (c *converter) custom(r *record, part int, content []byte, by sayer) agents.Entry {
	body := append(append(append(c.body, `"customType":"`...), by...), `","content":`...)
	body = append(append(body, content...), `,"display":`...)
	e := entryOf(r, part, strconv.AppendBool(body, by != meta))
	e.Type = "custom_message"
	return e
}

// aside returns the entry of a client's record with words outside the talk, if it is one.
func (c *converter) aside(r *record) (e agents.Entry, ok bool) {
	if r.typ.Is("attachment") {
		return c.mention(r)
	}
	content, by := r.Member("content"), recap
	switch subtype := r.Member("subtype"); {
	case !r.typ.Is("system") || !content.IsString() || content.Is(""):
		return e, false
	case subtype.Is("local_command"):
		by = output
	case !subtype.Is("away_summary"):
		return e, false
	}
	return c.notSent(r, 0, c.sent(content), by), true
}

// notSent is custom for content that is not sent to the model.
func (c *converter) notSent(r *record, part int, content []byte, by sayer) agents.Entry {
	e := c.custom(r, part, content, by)
	e.Body = append(e.Body, `,"excludeFromContext":true`...)
	return e
}

// replace remembers the results that the client sends in another form when it resumes the session.
func (c *converter) replace(r *record) {
	if !c.Side && !r.Member("agentId").Missing() {
		return // they are in a subagent's file
	}
	r.Member("replacements").EachElement(func(v rawjson.Value, _ int) bool {
		id, _ := v.Member("toolUseId").Text()
		if text := v.Member("replacement"); id != "" && text.IsString() {
			learn(c.learned, c.learned.replaced, id, string(text))
		}
		return true
	})
}

// sentResult returns the content of a result as it is sent, and the original of a replacement,
// which becomes an entry that is not sent, else nil.
func (c *converter) sentResult(result agents.Object) (content rawjson.Value, original []byte) {
	id, _ := result.Member("tool_use_id").Text()
	content = result.Member("content")
	replacement, ok := c.learned.replaced[id]
	if !ok || string(content) == replacement {
		return content, nil
	}
	if content.IsString() || content.IsArray() {
		original = appendContent([]byte{'['}, c.sent(content))
	}
	return rawjson.Value(replacement), original
}

// mention returns the entry of an attachment with a file or directory from a prompt.
func (c *converter) mention(r *record) (e agents.Entry, ok bool) {
	attachment := agents.Read(r.Member("attachment"))
	if kind := attachment.Member("type"); !kind.Is("file") && !kind.Is("directory") {
		return e, false
	}
	content := attachment.Member("content")
	file := content.Member("file")
	name := attachment.AnyOf("filename", "path")
	if !name.IsString() {
		if name = file.Member("filePath"); !name.IsString() {
			return e, false
		}
	}
	body := append(append(c.body, `"message":{"role":"fileMention","files":[{"path":`...), name...)
	switch text := file.Member("content"); {
	case content.IsString():
		body = agents.AppendMember(body, "content", content)
	case text.IsString():
		body = agents.AppendMember(body, "content", text)
	case content.Member("type").Is("image") && file.Member("base64").IsString() && file.Member("type").IsString():
		body = agents.AppendMember(append(body, `,"image":{"type":"image"`...), "data", file.Member("base64"))
		body = append(agents.AppendMember(body, "mimeType", file.Member("type")), '}')
	default:
		return e, false
	}
	return entryOf(r, 0, append(agents.AppendMillis(append(body, "}]"...), r.time()), '}')), true
}
