package sessioncore

import (
	"context"
	"strconv"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
)

// Context returns what the model would be sent at an entry, or before the first entry if at is NoEntry, as the
// client's buildSessionContext does: one JSON object and a newline (docs/design.md, context.json; docs/format.md,
// Context). Blob references are resolved through blobs; if blobs is nil, they are left as they are. The document
// holds a reference to the snapshot until it is closed. pi has no blobs, and takes references as they are.
func (s *Snapshot) Context(ctx context.Context, at Entry, blobs document.Blobs) (*document.Document, error) {
	if s.dialect == Pi {
		blobs = nil
	}
	c := &contextBuilder{ctx: ctx, s: s, words: &s.dialect.context, doc: document.New(s, blobs, nil), resolver: document.NewResolver(ctx, blobs)}
	if at != NoEntry {
		c.path = s.Path(at)
	}
	if err := c.build(); err != nil {
		c.doc.Close()
		return nil, err
	}
	c.doc.SetResolved(c.resolver, c.blobs)
	return c.doc, nil
}

// contextBuilder writes a context along a path.
type contextBuilder struct {
	ctx      context.Context // when it is done, nobody waits for the context
	s        *Snapshot
	words    *contextWords
	doc      *document.Document
	resolver *document.Resolver
	path     []Entry
	messages int  // number written so far
	blobs    bool // an entry on the path may have a blob reference
}

func (c *contextBuilder) build() error {
	c.doc.AddText(`{"messages":[`)
	messages := c.writeMessages
	if c.s.dialect == Pi {
		messages = c.writePiMessages
	}
	if err := messages(); err != nil {
		return err
	}
	c.doc.AddText(`]`)
	if err := c.writeSettings(); err != nil {
		return err
	}
	c.doc.AddText("}\n")
	return c.ctx.Err()
}

// writeMessages writes the messages of the path. Of the entries before the last compaction it writes only the
// summary and those that were kept.
func (c *contextBuilder) writeMessages() error {
	at := c.last(TypeCompaction)
	if at < 0 {
		return c.writeEntries(c.path)
	}
	compaction, err := c.s.EntryText(c.path[at])
	if err != nil {
		return err
	}
	remote, err := c.writeCompaction(c.path[at], compaction)
	if err != nil {
		return err
	}
	if !remote {
		if err := c.writeEntries(c.kept(at, compaction)); err != nil {
			return err
		}
	}
	return c.writeEntries(c.path[at+1:])
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

// kept returns the entries that the compaction at path[at] keeps: those before it from its first kept entry on,
// none if that entry is not before it.
func (c *contextBuilder) kept(at int, compaction rawjson.Value) []Entry {
	var first symbol
	if index := compaction.Member(oldKeptKey); c.s.version < 2 && index.IsNumber() {
		first, _ = c.s.keptByIndex(index)
	} else if id, ok := compaction.Member(c.s.dialect.KeptKey).Bytes(); ok {
		first = c.s.symbols.find(id)
	}
	if first == 0 {
		return nil
	}
	for i, e := range c.path[:at] {
		if c.s.records[e].id == first {
			return c.path[i:at]
		}
	}
	return nil
}

func (c *contextBuilder) writeEntries(entries []Entry) error {
	for _, e := range entries {
		err := c.ctx.Err()
		if err != nil {
			return err
		}
		switch c.s.records[e].kind {
		case TypeMessage:
			err = c.writeMessage(e)
		case TypeCustomMessage:
			if c.words.customKeys != nil {
				err = c.writeCustomMessage(e)
			}
		case TypeBranchSummary:
			err = c.writeBranchSummary(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// separate starts the next message.
func (c *contextBuilder) separate() {
	if c.messages > 0 {
		c.doc.AddText(",")
	}
	c.messages++
}

// touched is the set of flags of entries whose bytes may differ from what the model is sent.
const touched = recBlob | recIllFormed | recBigNumber | recManyLines

// writeMessage writes the value of an entry's key "message", usually without reading it.
func (c *contextBuilder) writeMessage(e Entry) error {
	rec := &c.s.records[e]
	if rec.msgSize == 0 {
		return nil // the client fails on such an entry, so there is nothing to send
	}
	off, size := rec.off+int64(rec.msgOff), int64(rec.msgSize)
	hook := rec.role == RoleHookMessage && c.s.version < 3
	payload := rec.role == RoleAssistant && rec.flags&recPayload != 0 && c.words.providerHistory
	c.blobs = c.blobs || rec.flags&recBlob != 0
	if rec.flags&touched == 0 && !hook && !payload && size != int64(len("null")) {
		c.separate()
		c.doc.AddRange(off, size)
		return nil
	}
	text, err := c.s.EntryText(e)
	if err != nil {
		return err
	}
	message := text[rec.msgOff : rec.msgOff+rec.msgSize]
	if message.Missing() {
		return nil
	}
	var edits rawjson.Edits
	if hook {
		edits = hookEdit(edits, message, 0)
	}
	if payload {
		edits = PayloadEdits(edits, message)
	}
	if rec.flags&touched != 0 {
		content := message.Member("content")
		edits = c.resolver.ImageEdits(edits, content, content.OffsetIn(message))
		if edits, err = c.resolver.TextEdits(edits, message, 0); err != nil {
			return err
		}
	}
	c.separate()
	c.doc.AddEdited(off, message, edits)
	return nil
}

// PayloadEdits removes an openaiResponsesHistory payload from an assistant message, and with it the signatures of
// its thinking blocks (docs/format.md, Context). Messages without such a payload keep both.
func PayloadEdits(edits rawjson.Edits, message rawjson.Value) rawjson.Edits {
	const key = "providerPayload"
	if !message.Member(key).Member("type").Is("openaiResponsesHistory") {
		return edits
	}
	edits = edits.Object(message, 0, "", func(m rawjson.Member) bool { return m.KeyIs(key) })
	content := message.Member("content")
	base := content.OffsetIn(message)
	content.EachElement(func(block rawjson.Value, at int) bool {
		if block.Member("type").Is("thinking") {
			edits = edits.Object(block, base+at, "", func(m rawjson.Member) bool { return m.KeyIs("thinkingSignature") })
		}
		return true
	})
	return edits
}

// field is a member of a composed message: its key and the value from the entry.
type field struct {
	key   string
	value rawjson.Value // nil: the member is omitted
}

// writeFields writes `,"key":value` for each field that has a value.
func (c *contextBuilder) writeFields(e Entry, text rawjson.Value, fields ...field) error {
	for _, f := range fields {
		if len(f.value) == 0 {
			continue
		}
		c.doc.AddText(`,"` + f.key + `":`)
		if err := c.writeValue(e, text, f.value); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys calls writeFields for members of text that keep their keys.
func (c *contextBuilder) writeKeys(e Entry, text rawjson.Value, keys []string) error {
	for _, key := range keys {
		if err := c.writeFields(e, text, field{key, text.Member(key)}); err != nil {
			return err
		}
	}
	return nil
}

// writeValue writes v, which is a part of entry e's text.
func (c *contextBuilder) writeValue(e Entry, text, v rawjson.Value) error {
	rec := &c.s.records[e]
	c.blobs = c.blobs || rec.flags&recBlob != 0
	var edits rawjson.Edits
	if rec.flags&touched != 0 {
		var err error
		edits = c.resolver.ImageEdits(edits, contentOf(rec, text, v), 0)
		if edits, err = c.resolver.TextEdits(edits, v, 0); err != nil {
			return err
		}
	}
	c.doc.AddEdited(rec.off+int64(v.OffsetIn(text)), v, edits)
	return nil
}

// contentOf returns v if it is the content of a custom_message, in which image blocks are resolved, and nil
// otherwise.
func contentOf(rec *record, text, v rawjson.Value) rawjson.Value {
	if rec.kind == TypeCustomMessage && v.OffsetIn(text) == text.Member("content").OffsetIn(text) {
		return v
	}
	return nil
}

// writeTime writes the end of a composed message: the entry's time in ms, null if it cannot be read.
func (c *contextBuilder) writeTime(e Entry) {
	ms := "null"
	if rec := &c.s.records[e]; rec.flags&recTimed != 0 {
		ms = strconv.FormatInt(rec.time, 10)
	}
	c.doc.AddText(`,"timestamp":` + ms + `}`)
}

func (c *contextBuilder) writeCustomMessage(e Entry) error {
	text, err := c.s.EntryText(e)
	if err != nil {
		return err
	}
	c.separate()
	c.doc.AddText(`{"role":"custom"`)
	err = c.writeKeys(e, text, c.words.customKeys)
	c.writeTime(e)
	return err
}

func (c *contextBuilder) writeBranchSummary(e Entry) error {
	text, err := c.s.EntryText(e)
	if err != nil || !text.Member("summary").Truthy() {
		return err
	}
	c.separate()
	c.doc.AddText(`{"role":"` + c.words.branchRole + `"`)
	err = c.writeKeys(e, text, c.words.branchKeys)
	c.writeTime(e)
	return err
}

// writeCompaction writes the summary of what was compacted. remote reports whether a provider keeps the history;
// nothing before the compaction is sent then.
func (c *contextBuilder) writeCompaction(e Entry, text rawjson.Value) (remote bool, err error) {
	c.separate()
	c.doc.AddText(`{"role":"` + c.words.compactionRole + `"`)
	if err := c.writeKeys(e, text, c.words.compactionKeys); err != nil {
		return false, err
	}
	var history rawjson.Value
	if c.words.providerHistory {
		history = text.Member("preserveData").Member("openaiRemoteCompaction")
	}
	provider, items := history.Member("provider"), history.Member("replacementHistory")
	if remote = provider.IsString() && provider.Truthy() && items.IsArray(); remote {
		c.doc.AddText(`,"providerPayload":{"type":"openaiResponsesHistory"`)
		if err := c.writeFields(e, text, field{"provider", provider}, field{"items", items}); err != nil {
			return false, err
		}
		c.doc.AddText(`}`)
	}
	c.writeTime(e)
	return remote, nil
}
