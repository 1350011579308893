package sessioncore

import (
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// This file writes the parts that only pi's buildSessionContext has (docs/format-pi.md, Context of pi).

// contextEdit is the change of a context_edit to a message.
type contextEdit struct {
	entryText
	removes bool          // the message
	content rawjson.Value // nil: the message keeps its content
}

// contextEdit reads the change of a context_edit.
func (c *contextBuilder) contextEdit(e Entry) contextEdit {
	l := c.load(e)
	replacement := l.text.Member("replacement")
	return contextEdit{
		entryText: l,
		removes:   replacement.IsNull(),
		content:   replacement.Member("content"),
	}
}

// contextEdits returns the last context_edit for each id among entries, none outside pi.
func (c *contextBuilder) contextEdits(entries []Entry) map[symbol]Entry {
	edits := map[symbol]Entry{}
	if c.s.dialect != Pi {
		return edits
	}
	for _, e := range entries {
		if c.s.records[e].kind != TypeContextEdit {
			continue
		}
		text := c.load(e).text
		id, hasTarget := text.Member("targetId").Bytes()
		if !hasTarget || len(text.Member("replacement")) == 0 {
			continue
		}
		target := c.s.symbols.find(id)
		if target != 0 {
			edits[target] = e
		}
	}
	return edits
}

// writeEditedMessage writes a message with the content of edit, if pi edits messages of its role.
func (c *contextBuilder) writeEditedMessage(e Entry, edit contextEdit) {
	l := c.load(e)
	if l.text == nil {
		return
	}
	message := l.message()
	blocks := false // the content must be a list
	role := message.Member("role")
	switch {
	case role.Is("assistant"), role.Is("toolResult"):
		blocks = true
	case !role.Is("user") && !role.Is("custom") && !role.Is("hookMessage"):
		c.writeMessage(e)
		return
	}
	old := message.Member("content")
	start := len(message) - 1
	end := len(message) - 1
	key := `,"content":`
	if old != nil {
		start = old.OffsetIn(message)
		end = old.OffsetIn(message) + len(old)
		key = ""
	}
	c.separate(e)
	c.writeValue(l, message[:start])
	c.doc.AddText(key)
	c.writeContent(edit, blocks)
	c.writeValue(l, message[end:])
}

// writeContent writes the content of a context_edit. With blocks, a text becomes a list of one.
func (c *contextBuilder) writeContent(edit contextEdit, blocks bool) {
	before := ""
	after := ""
	if blocks && edit.content.IsString() {
		before = `[{"type":"text","text":`
		after = `}]`
	}
	c.doc.AddText(before)
	c.writeValue(edit.entryText, edit.content)
	c.doc.AddText(after)
}

// writeRetained writes the messages that a compaction keeps itself, without answers that failed.
func (c *contextBuilder) writeRetained(e Entry, l entryText) {
	for message := range l.text.Member("retainedTail").EachElement {
		reason := message.Member("stopReason")
		hasFailed := reason.Is("error") || reason.Is("aborted") || reason.Is("deferred")
		if message.IsObject() && !hasFailed {
			c.separate(e)
			c.writeValue(l, message)
		}
	}
}

// writePiThinkingLevel writes the level as the entry has it.
func (c *contextBuilder) writePiThinkingLevel() {
	l := c.lastOf(TypeThinkingLevelChange)
	if l.text != nil {
		c.writeKeys(l, []string{"thinkingLevel"})
	} else {
		c.doc.AddText(`,"thinkingLevel":"off"`)
	}
}

// writePiModel writes the model of the last model_change or answer on the path.
func (c *contextBuilder) writePiModel() {
	for _, e := range slices.Backward(c.path) {
		rec := &c.s.records[e]
		isAnswer := rec.kind == TypeMessage && rec.role == RoleAssistant
		if rec.kind != TypeModelChange && !isAnswer {
			continue
		}
		l := c.load(e)
		from := l.text
		key := "modelId"
		if isAnswer {
			from = l.text.Member("message")
			key = "model"
		}
		c.doc.AddText(`,"model":{`)
		provider := from.Member("provider")
		model := from.Member(key)
		if provider != nil {
			c.doc.AddText(`"provider":`)
			c.writeValue(l, provider)
		}
		if model != nil {
			if provider != nil {
				c.doc.AddText(",")
			}
			c.doc.AddText(`"modelId":`)
			c.writeValue(l, model)
		}
		c.doc.AddText("}")
		return
	}
	c.doc.AddText(`,"model":null`)
}
