package sessioncore

import (
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// This file writes the parts that only pi's buildSessionContext has (docs/format-pi.md, Context of pi).

// contextEdit is the change of a context_edit to a message.
type contextEdit struct {
	entryText               // the context_edit itself
	removes   bool          // the message
	content   rawjson.Value // nil: the message keeps its content
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

// contextEdits returns the last context_edit for each id among entries, none outside pi. Edits
// without a replacement do not count.
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
		if target != 0 { // 0: no entry has the id
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
	role := message.Member("role")
	needsBlocks := role.Is("assistant") || role.Is("toolResult")
	mayBeText := role.Is("user") || role.Is("custom") || role.Is("hookMessage")
	if !needsBlocks && !mayBeText {
		c.writeMessage(e)
		return
	}
	old := message.Member("content")
	start := len(message) - 1 // without a content, one is added before the closing brace
	end := start
	key := `,"content":`
	if old != nil {
		start = old.OffsetIn(message)
		end = start + len(old)
		key = ""
	}
	c.separate(e)
	c.writeValue(l, message[:start])
	c.doc.AddText(key)
	if needsBlocks {
		c.writeBlocks(edit)
	} else {
		c.writeContent(edit)
	}
	c.writeValue(l, message[end:])
}

// writeContent writes the content of a context_edit as it is.
func (c *contextBuilder) writeContent(edit contextEdit) {
	c.writeValue(edit.entryText, edit.content)
}

// writeBlocks writes the content of a context_edit as a list: a text becomes its only block.
func (c *contextBuilder) writeBlocks(edit contextEdit) {
	if !edit.content.IsString() {
		c.writeContent(edit)
		return
	}
	c.doc.AddText(`[{"type":"text","text":`)
	c.writeContent(edit)
	c.doc.AddText(`}]`)
}

// writeRetained writes the messages in the text l of compaction e, without answers that failed.
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

// writePiThinkingLevel writes the thinking level as the last entry that sets it has it, by default
// "off".
func (c *contextBuilder) writePiThinkingLevel() {
	l := c.lastOf(TypeThinkingLevelChange)
	if l.text != nil {
		c.writeKeys(l, []string{"thinkingLevel"})
	} else {
		c.doc.AddText(`,"thinkingLevel":"off"`)
	}
}

// writePiModel writes the model of the last model_change or answer on the path, null if there is
// none.
func (c *contextBuilder) writePiModel() {
	for _, e := range slices.Backward(c.path) {
		rec := &c.s.records[e]
		isAnswer := rec.kind == TypeMessage && rec.role == RoleAssistant
		if rec.kind != TypeModelChange && !isAnswer {
			continue
		}
		l := c.load(e)
		holder := l.text
		modelKey := "modelId"
		if isAnswer {
			holder = l.text.Member("message")
			modelKey = "model"
		}
		c.writePiModelOf(l, holder.Member("provider"), holder.Member(modelKey))
		return
	}
	c.doc.AddText(`,"model":null`)
}

// writePiModelOf writes a model by parts of the entry l; either may be nil.
func (c *contextBuilder) writePiModelOf(l entryText, provider, model rawjson.Value) {
	c.doc.AddText(`,"model":{`)
	if provider != nil {
		c.doc.AddText(`"provider":`)
		c.writeValue(l, provider)
	}
	if provider != nil && model != nil {
		c.doc.AddText(",")
	}
	if model != nil {
		c.doc.AddText(`"modelId":`)
		c.writeValue(l, model)
	}
	c.doc.AddText("}")
}
