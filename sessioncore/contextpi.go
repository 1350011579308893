package sessioncore

import (
	"sessionfs/sessioncore/internal/rawjson"
)

// This file writes the messages of a pi session, as pi's buildSessionContext does (docs/format.md, Context of pi).

// writePiMessages writes the messages of the path: the last compaction first, then what it kept and what follows it.
func (c *contextBuilder) writePiMessages() error {
	entries, err := c.piEntries()
	if err != nil {
		return err
	}
	edits, err := c.contextEdits(entries)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if i > 0 && c.s.records[e].kind == TypeCompaction {
			continue // only the last one counts
		}
		edit, ok := edits[c.s.records[e].id]
		if !ok {
			edit = NoEntry
		}
		if err := c.writePiEntry(e, edit); err != nil {
			return err
		}
	}
	return nil
}

// piEntries returns the entries that have a part in the context, in its order. Of what a compaction kept, system
// messages are left out: it has them in a message of its own.
func (c *contextBuilder) piEntries() ([]Entry, error) {
	at := c.last(TypeCompaction)
	if at < 0 {
		return c.path, nil
	}
	compaction, err := c.s.EntryText(c.path[at])
	if err != nil {
		return nil, err
	}
	entries := []Entry{c.path[at]}
	for _, e := range c.kept(at, compaction) {
		if rec := &c.s.records[e]; rec.kind != TypeMessage || rec.role != RoleSystem {
			entries = append(entries, e)
		}
	}
	return append(entries, c.path[at+1:]...), nil
}

// contextEdits returns the last context_edit for each id among entries.
func (c *contextBuilder) contextEdits(entries []Entry) (map[symbol]Entry, error) {
	edits := map[symbol]Entry{}
	for _, e := range entries {
		if c.s.records[e].kind != TypeContextEdit {
			continue
		}
		text, err := c.s.EntryText(e)
		if err != nil {
			return nil, err
		}
		if id, ok := text.Member("targetId").Bytes(); ok && len(text.Member("replacement")) > 0 {
			if target := c.s.symbols.find(id); target != 0 {
				edits[target] = e
			}
		}
	}
	return edits, nil
}

// newContent is what a context_edit puts in the place of a message's content.
type newContent struct {
	entry Entry
	text  rawjson.Value // of the entry
	value rawjson.Value // nil: the message keeps its content
}

// writePiEntry writes the messages of an entry, with the content of a context_edit or, if edit is NoEntry, its own.
func (c *contextBuilder) writePiEntry(e, edit Entry) error {
	var content newContent
	if edit != NoEntry {
		text, err := c.s.EntryText(edit)
		if err != nil {
			return err
		}
		replacement := text.Member("replacement")
		if replacement.IsNull() {
			return nil
		}
		content = newContent{edit, text, replacement.Member("content")}
	}
	switch c.s.records[e].kind {
	case TypeMessage:
		if content.value != nil {
			return c.writeEditedMessage(e, content)
		}
		return c.writeMessage(e)
	case TypeCustomMessage:
		return c.writePiCustomMessage(e, content)
	case TypeBranchSummary:
		return c.writeBranchSummary(e)
	case TypeCompaction:
		return c.writePiCompaction(e)
	}
	return nil
}

// writeEditedMessage writes a message with another content. Only messages that pi edits get it.
func (c *contextBuilder) writeEditedMessage(e Entry, content newContent) error {
	text, err := c.s.EntryText(e)
	if err != nil {
		return err
	}
	message := c.s.Message(e, text)
	blocks := false // the content must be a list
	switch role := message.Member("role"); {
	case role.Is("assistant"), role.Is("toolResult"):
		blocks = true
	case !role.Is("user") && !role.Is("custom") && !role.Is("hookMessage"):
		return c.writeMessage(e)
	}
	old := message.Member("content")
	start, end, key := len(message)-1, len(message)-1, `,"content":`
	if old != nil {
		start, end, key = old.OffsetIn(message), old.OffsetIn(message)+len(old), ""
	}
	c.separate()
	if err := c.writeValue(e, text, message[:start]); err != nil {
		return err
	}
	c.doc.AddText(key)
	if err := c.writeContent(content, blocks); err != nil {
		return err
	}
	return c.writeValue(e, text, message[end:])
}

// writeContent writes the content of a context_edit. If blocks is set, a text becomes a list with one block.
func (c *contextBuilder) writeContent(content newContent, blocks bool) error {
	before, after := "", ""
	if blocks && content.value.IsString() {
		before, after = `[{"type":"text","text":`, `}]`
	}
	c.doc.AddText(before)
	if err := c.writeValue(content.entry, content.text, content.value); err != nil {
		return err
	}
	c.doc.AddText(after)
	return nil
}

// writePiCustomMessage writes a custom_message. Without a content it has an empty one.
func (c *contextBuilder) writePiCustomMessage(e Entry, content newContent) error {
	text, err := c.s.EntryText(e)
	if err != nil {
		return err
	}
	c.separate()
	c.doc.AddText(`{"role":"custom"`)
	for _, key := range c.words.customKeys {
		switch value := text.Member(key); {
		case key == "content" && content.value != nil:
			c.doc.AddText(`,"content":`)
			err = c.writeContent(content, false)
		case key == "content" && value.Missing():
			c.doc.AddText(`,"content":[]`)
		default:
			err = c.writeFields(e, text, field{key, value})
		}
		if err != nil {
			return err
		}
	}
	c.writeTime(e)
	return nil
}

// writePiCompaction writes the messages of a compaction: the system message, the summary, and what another program of
// pi's authors kept in the compaction itself, where no entry is named from which on it keeps.
func (c *contextBuilder) writePiCompaction(e Entry) error {
	text, err := c.s.EntryText(e)
	if err != nil {
		return err
	}
	if system := text.Member("systemMessage"); system.Truthy() {
		c.separate()
		if err := c.writeValue(e, text, system); err != nil {
			return err
		}
	}
	if _, err := c.writeCompaction(e, text); err != nil {
		return err
	}
	if text.Member(keptKey) != nil {
		return nil
	}
	text.Member("retainedTail").EachElement(func(message rawjson.Value, _ int) bool {
		if reason := message.Member("stopReason"); !message.IsObject() || reason.Is("error") || reason.Is("aborted") || reason.Is("deferred") {
			return true
		}
		c.separate()
		err = c.writeValue(e, text, message)
		return err == nil
	})
	return err
}

// writePiThinkingLevel writes the level as the entry has it.
func (c *contextBuilder) writePiThinkingLevel() error {
	e, text, err := c.lastText(TypeThinkingLevelChange)
	if err != nil {
		return err
	}
	if e == NoEntry {
		c.doc.AddText(`,"thinkingLevel":"off"`)
		return nil
	}
	return c.writeFields(e, text, field{"thinkingLevel", text.Member("thinkingLevel")})
}

// writePiModel writes the model: that of the last model_change or answer on the path.
func (c *contextBuilder) writePiModel() error {
	for i := len(c.path) - 1; i >= 0; i-- {
		e := c.path[i]
		rec := &c.s.records[e]
		if rec.kind != TypeModelChange && (rec.kind != TypeMessage || rec.role != RoleAssistant) {
			continue
		}
		text, err := c.s.EntryText(e)
		if err != nil {
			return err
		}
		from, key := text, "modelId"
		if rec.kind == TypeMessage {
			from, key = c.s.Message(e, text), "model"
		}
		before := `,"model":{`
		for _, f := range []field{{"provider", from.Member("provider")}, {"modelId", from.Member(key)}} {
			if len(f.value) == 0 {
				continue
			}
			c.doc.AddText(before + `"` + f.key + `":`)
			if err := c.writeValue(e, text, f.value); err != nil {
				return err
			}
			before = ","
		}
		if before != "," {
			c.doc.AddText(before)
		}
		c.doc.AddText("}")
		return nil
	}
	c.doc.AddText(`,"model":null`)
	return nil
}
