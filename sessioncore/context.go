package sessioncore

import (
	"context"
	"slices"
	"strconv"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
)

// Context returns the model's context at an entry, or before the first entry if at is NoEntry, like
// the client's buildSessionContext: one JSON object and a newline (docs/design.md, context.json;
// docs/format.md, Context). It resolves blob references through blobs unless that is nil; pi has no
// blobs and sends references unchanged. The document holds a reference to the snapshot until it is
// closed.
func (s *Snapshot) Context(ctx context.Context, at Entry, blobs document.Blobs) (*document.Document, error) {
	doc, _, err := s.ContextEntries(ctx, at, blobs)
	return doc, err
}

// ContextEntries is Context, and returns the entry of each message, too.
func (s *Snapshot) ContextEntries(
	ctx context.Context, at Entry, blobs document.Blobs,
) (*document.Document, []Entry, error) {
	if s.dialect == Pi {
		blobs = nil
	}
	doc := document.New(s, blobs, nil)
	resolver := document.NewResolver(ctx, blobs)
	c := &contextBuilder{
		ctx:      ctx,
		s:        s,
		words:    &s.dialect.context,
		doc:      doc,
		resolver: resolver,
	}
	if at != NoEntry {
		c.path = s.Path(at)
	}
	c.write()
	if c.err == nil {
		c.err = ctx.Err()
	}
	if c.err != nil {
		c.doc.Close()
		return nil, nil, c.err
	}
	c.doc.SetResolved(c.resolver, c.blobs)
	return c.doc, c.messages, nil
}

// contextBuilder writes a context along a path. After an error its output is discarded.
type contextBuilder struct {
	ctx      context.Context // done when no caller waits for the context
	s        *Snapshot
	words    *contextWords
	doc      *document.Document
	resolver *document.Resolver
	path     []Entry
	messages []Entry // the entries of those written so far
	blobs    bool    // an entry on the path may have a blob reference
	err      error   // the first one
}

// entryText is an entry with its text. Without an entry both fields are nil. If an entry could not
// be read, its text alone is nil.
type entryText struct {
	rec  *indexRecord
	text rawjson.Value
}

// message returns the value of the key "message", empty if there is none. There must be a text.
func (l entryText) message() rawjson.Value { return l.text[l.rec.msgOff : l.rec.msgOff+l.rec.msgSize] }

// load reads an entry, unless there was an error before. It keeps its own error in c.err.
func (c *contextBuilder) load(e Entry) entryText {
	l := entryText{rec: &c.s.records[e]}
	if c.err == nil {
		c.err = c.ctx.Err()
	}
	if c.err == nil {
		l.text, c.err = c.s.EntryText(e)
		if c.err != nil {
			l.text = nil
		}
	}
	return l
}

// write writes the whole file.
func (c *contextBuilder) write() {
	c.doc.AddText(`{"messages":[`)
	c.writeMessages()
	c.doc.AddText(`]`)
	c.writeSettings()
	c.doc.AddText("}\n")
}

// writeMessages writes the messages of the path: the last compaction, the entries that it keeps, and
// those after it; without a compaction all entries.
func (c *contextBuilder) writeMessages() {
	entries := c.path
	at := c.last(TypeCompaction)
	if at >= 0 {
		kept := c.keptEntries(at, c.load(c.path[at]).text)
		entries = slices.Concat(c.path[at:at+1], kept, c.path[at+1:])
	}
	edits := c.contextEdits(entries)
	for i, e := range entries {
		var edit contextEdit
		editedAt, isEdited := edits[c.s.records[e].id]
		if isEdited {
			edit = c.contextEdit(editedAt)
		}
		if !edit.removes {
			c.writeEntry(e, edit, i == 0)
		}
	}
}

// writeEntry writes the message of an entry, changed by an edit. Only the last compaction counts,
// which is first.
func (c *contextBuilder) writeEntry(e Entry, edit contextEdit, isFirst bool) {
	switch c.s.records[e].kind {
	case TypeMessage:
		if edit.content != nil {
			c.writeEditedMessage(e, edit)
		} else {
			c.writeMessage(e)
		}
	case TypeCustomMessage:
		if c.words.customKeys != nil {
			c.writeCustomMessage(e, edit)
		}
	case TypeBranchSummary:
		c.writeBranchSummary(e)
	case TypeCompaction:
		if isFirst {
			c.writeCompaction(e)
		}
	}
}

// last returns the index in the path of the last entry of a type, or -1.
func (c *contextBuilder) last(kind EntryType) int {
	for i := len(c.path) - 1; i >= 0; i-- {
		if c.s.records[c.path[i]].kind == kind {
			return i
		}
	}
	return -1
}

// keptEntries returns the entries that the compaction at path[at] keeps, in the order of the path:
// those from its first kept entry to the compaction. There are none if that entry is not before the
// compaction or a provider keeps the history. In pi, system messages are omitted, as the compaction
// has one of its own. A rollover also keeps the user's last request, if it is before the others.
func (c *contextBuilder) keptEntries(at int, compaction rawjson.Value) []Entry {
	_, items := c.remoteHistory(compaction)
	if items != nil {
		return nil
	}
	first := c.firstKept(compaction)
	if first == 0 {
		return nil
	}
	isOmitted := func(e Entry) bool {
		rec := &c.s.records[e]
		return c.s.dialect == Pi && rec.kind == TypeMessage && rec.role == RoleSystem
	}
	var kept []Entry
	from := slices.IndexFunc(c.path, func(e Entry) bool {
		return c.s.records[e].id == first
	})
	if from >= 0 && from < at {
		kept = slices.DeleteFunc(slices.Clone(c.path[from:at]), isOmitted)
	}
	kind := compaction.Member("details").Member("kind")
	if kind.Is(rollover) {
		request := c.lastRequest(at)
		isBeforeKept := request >= 0 && request < from
		if isBeforeKept {
			kept = append([]Entry{c.path[request]}, kept...)
		}
	}
	return kept
}

// rollover is the kind of omp's compactions that keep the last request of the user, too.
const rollover = "experimental-context-rollover"

// lastRequest returns the index of the last request of a user before path[at] and behind the last
// /clear, or -1. To the client, each message of a user is one.
func (c *contextBuilder) lastRequest(at int) int {
	for i, e := range slices.Backward(c.path[:at]) {
		switch {
		case c.s.Kind(e) == TypeResetBoundary:
			return -1
		case c.s.IsRequest(e), c.s.IsMessage(e, RoleUser):
			return i
		}
	}
	return -1
}

// separate starts the next message, and records that it is a message of entry e.
func (c *contextBuilder) separate(e Entry) {
	if len(c.messages) > 0 {
		c.doc.AddText(",")
	}
	c.messages = append(c.messages, e)
}

// alteredFlags are the flags of entries with other bytes than the text for the model.
const alteredFlags = recBlob | recIllFormed | recBigNumber | recManyLines

// firstKept returns the id of the first entry that a compaction keeps, 0 for none.
func (c *contextBuilder) firstKept(compaction rawjson.Value) symbol {
	index := compaction.Member(oldKeptKey) // which only files of version 1 have
	if c.s.version < 2 && index.IsNumber() {
		first, _ := c.s.keptByIndex(index)
		return first
	}
	id, isText := compaction.Member(c.s.dialect.KeptKey).Bytes()
	if !isText {
		return 0
	}
	return c.s.symbols.find(id)
}

// writeMessage writes the value of an entry's key "message". Usually it does not read the value, but
// refers to its bytes in the file.
func (c *contextBuilder) writeMessage(e Entry) {
	rec := &c.s.records[e]
	if rec.msgSize == 0 {
		return // the client fails on such an entry, so there is nothing to send
	}
	off := rec.off + int64(rec.msgOff)
	size := int64(rec.msgSize)
	if rec.flags&recBlob != 0 {
		c.blobs = true
	}
	isOldHook := rec.role == RoleHookMessage && c.s.version < 3
	hasPayload := rec.role == RoleAssistant && rec.flags&recPayload != 0 && c.words.providerHistory
	isAltered := rec.flags&alteredFlags != 0 || isOldHook || hasPayload
	mayBeNull := size == int64(len("null")) // a null is no message, and not sent
	if !isAltered && !mayBeNull {
		c.separate(e)
		c.doc.AddRange(off, size)
		return
	}
	l := c.load(e)
	if l.text == nil || l.message().Missing() {
		return
	}
	message := l.message()
	var edits rawjson.Edits
	if isOldHook {
		edits = hookEdit(edits, message, 0)
	}
	if hasPayload {
		edits = payloadEdits(edits, message)
	}
	if rec.flags&alteredFlags != 0 {
		content := message.Member("content")
		edits = c.resolver.ImageEdits(edits, content, content.OffsetIn(message))
		edits = c.textEdits(edits, message)
	}
	c.separate(e)
	c.doc.AddEdited(off, message, edits)
}

// textEdits adds the edits that may occur anywhere in a text: blob references and bytes that are not
// UTF-8. It keeps the resolver's error in c.err.
func (c *contextBuilder) textEdits(edits rawjson.Edits, text rawjson.Value) rawjson.Edits {
	edits, err := c.resolver.TextEdits(edits, text, 0)
	if c.err == nil {
		c.err = err
	}
	return edits
}

// payloadEdits removes an openaiResponsesHistory payload from an assistant message, and with it the
// signatures of its thinking blocks (docs/format.md, Context).
func payloadEdits(edits rawjson.Edits, message rawjson.Value) rawjson.Edits {
	const key = "providerPayload"
	if !message.Member(key).Member("type").Is("openaiResponsesHistory") {
		return edits
	}
	edits = edits.Object(message, 0, "", func(m rawjson.Member) bool {
		return m.KeyIs(key)
	})
	content := message.Member("content")
	base := content.OffsetIn(message)
	hasSignature := func(m rawjson.Member) bool { return m.KeyIs("thinkingSignature") }
	for block, at := range content.EachElement {
		if block.Member("type").Is("thinking") {
			edits = edits.Object(block, base+at, "", hasSignature)
		}
	}
	return edits
}

// writeField writes `,"key":value` if there is a value, which is a part of an entry's text.
func (c *contextBuilder) writeField(l entryText, key string, value rawjson.Value) {
	if len(value) > 0 {
		c.doc.AddText(`,"` + key + `":`)
		c.writeValue(l, value)
	}
}

// writeKeys writes members of an entry that keep their keys.
func (c *contextBuilder) writeKeys(l entryText, keys []string) {
	for _, key := range keys {
		c.writeField(l, key, l.text.Member(key))
	}
}

// writeValue writes v, which is a part of an entry's text.
func (c *contextBuilder) writeValue(l entryText, v rawjson.Value) {
	if l.text == nil {
		return
	}
	if l.rec.flags&recBlob != 0 {
		c.blobs = true
	}
	at := v.OffsetIn(l.text)
	var edits rawjson.Edits
	if l.rec.flags&alteredFlags != 0 {
		// Only the content of a custom message has image blocks.
		isContent := at == l.text.Member("content").OffsetIn(l.text)
		if l.rec.kind == TypeCustomMessage && isContent {
			edits = c.resolver.ImageEdits(edits, v, 0)
		}
		edits = c.textEdits(edits, v)
	}
	c.doc.AddEdited(l.rec.off+int64(at), v, edits)
}

// writeTime writes the end of a composed message: the entry's time in ms. In place of an unreadable
// timestamp it writes the result of JavaScript's Date, in operator null.
func (c *contextBuilder) writeTime(l entryText) {
	ms := "null"
	switch {
	case l.rec.flags&recTimed != 0:
		ms = strconv.FormatInt(l.rec.time, 10)
	case c.s.dialect != Operator:
		ms = string(rawjson.AppendDate(nil, l.text.Member("timestamp")))
	}
	c.doc.AddText(`,"timestamp":` + ms + `}`)
}

// writeCustomMessage writes a custom_message, with the content of an edit if that has one. In pi, a missing
// content becomes an empty one.
func (c *contextBuilder) writeCustomMessage(e Entry, edit contextEdit) {
	l := c.load(e)
	if c.s.dialect != Pi && l.text.Member("excludeFromContext").Truthy() {
		return // of another agent, which does not send it
	}
	c.separate(e)
	c.doc.AddText(`{"role":"custom"`)
	for _, key := range c.words.customKeys {
		value := l.text.Member(key)
		switch {
		case key == "content" && edit.content != nil:
			c.doc.AddText(`,"content":`)
			c.writeContent(edit)
		case key == "content" && c.s.dialect == Pi && value.Missing():
			c.doc.AddText(`,"content":[]`)
		default:
			c.writeField(l, key, value)
		}
	}
	c.writeTime(l)
}

// writeBranchSummary writes the summary of a branch that was left, unless it is empty.
func (c *contextBuilder) writeBranchSummary(e Entry) {
	l := c.load(e)
	if !l.text.Member("summary").Truthy() {
		return
	}
	c.separate(e)
	c.doc.AddText(`{"role":"` + c.words.branchRole + `"`)
	c.writeKeys(l, c.words.branchKeys)
	c.writeTime(l)
}

// remoteHistory returns the history that a provider keeps since a compaction, nil if it keeps none:
// then nothing before the compaction is sent.
func (c *contextBuilder) remoteHistory(compaction rawjson.Value) (provider, items rawjson.Value) {
	history := compaction.Member("preserveData").Member("openaiRemoteCompaction")
	provider = history.Member("provider")
	items = history.Member("replacementHistory")
	isNamed := provider.IsString() && provider.Truthy()
	if !c.words.providerHistory || !isNamed || !items.IsArray() {
		return nil, nil
	}
	return provider, items
}

// writeCompaction writes the messages of a compaction: in pi the system message, the summary, and
// in pi, if it names no first kept entry, the messages that another program keeps in it.
func (c *contextBuilder) writeCompaction(e Entry) {
	l := c.load(e)
	system := l.text.Member("systemMessage")
	if c.s.dialect == Pi && system.Truthy() {
		c.separate(e)
		c.writeValue(l, system)
	}
	c.separate(e)
	c.doc.AddText(`{"role":"` + c.words.compactionRole + `"`)
	c.writeKeys(l, c.words.compactionKeys)
	provider, items := c.remoteHistory(l.text)
	if items != nil {
		c.doc.AddText(`,"providerPayload":{"type":"openaiResponsesHistory"`)
		c.writeField(l, "provider", provider)
		c.writeField(l, "items", items)
		c.doc.AddText(`}`)
	}
	c.writeTime(l)
	if c.s.dialect == Pi && l.text.Member(keptKey) == nil {
		c.writeRetained(e, l)
	}
}
