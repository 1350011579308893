package writer

import (
	"fmt"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// draft is a line to be appended, checked as far as possible without the session.
type draft struct {
	kind    sessioncore.EntryType
	text    rawjson.Value   // on one line, with size controls applied
	blobs   []BlobReference // blobs that text refers to
	id      rawjson.Value   // nil if it has to be created
	parent  rawjson.Value   // nil if it has to be chosen
	hasTime bool            // the line has a timestamp
}

// parseDraft checks one line for a session of dialect d and applies the size controls. The error is a
// FieldError, or wraps ErrTooBig. The draft keeps parts of line.
func parseDraft(line []byte, d *sessioncore.Dialect, rules PersistRules) (*draft, error) {
	if len(line) > MaxLine {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", sessioncore.ErrTooBig, len(line), MaxLine)
	}
	text := rawjson.Value(line[rawjson.SkipSpace(line, 0):])
	var s rawjson.Scanner
	end, st := s.SkipValue(text, 0)
	if st != rawjson.OK || rawjson.SkipSpace(text, end) != len(text) {
		return nil, &FieldError{Want: "one JSON object", Got: notJSON(text, end)}
	}
	text = text[:end]
	if !text.IsObject() {
		return nil, &FieldError{Want: "one JSON object", Got: text.Kind().String()}
	}
	kind, fills, err := checkEntry(d, text)
	if err != nil {
		return nil, err
	}
	text = sessioncore.OneLine(text)
	if len(fills) > 0 { // OneLine keeps all offsets
		text = fills.Apply(text)
	}
	p, err := Persist(text, rules)
	if err != nil {
		return nil, err
	}
	// Replaced invalid UTF-8 grows, so the size is checked once more.
	if len(p.Text) > MaxLine {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", sessioncore.ErrTooBig, len(p.Text), MaxLine)
	}
	return &draft{
		kind:    kind,
		text:    p.Text,
		blobs:   p.Blobs,
		id:      p.Text.Member("id"),
		parent:  p.Text.Member(d.ParentKey),
		hasTime: p.Text.Member("timestamp") != nil,
	}, nil
}

// notJSON describes where a line stops being JSON.
func notJSON(text rawjson.Value, at int) string {
	if at >= len(text) {
		return "a text that ends too early; an entry is one line, as jq -c prints it"
	}
	return fmt.Sprintf("%q at byte %d", shortened(text[at:]), at)
}

// batch collects the lines of one write to a session; each line can refer to those before.
type batch struct {
	w       *Writer
	snap    *sessioncore.Snapshot
	dialect *sessioncore.Dialect
	now     time.Time // filled in as timestamp, in form
	form    rawjson.TimeForm
	ids     map[string]batchLine // the lines so far by their ids, WTF-8
	leaf    *string              // nil if none
	lines   []byte
}

// emptyBatch returns a batch that begins with a line without a parent.
func (w *Writer) emptyBatch(snap *sessioncore.Snapshot) *batch {
	return &batch{
		w:       w,
		snap:    snap,
		dialect: snap.Dialect(),
		now:     w.opts.Now(),
		form:    snap.TimeForm(),
		ids:     map[string]batchLine{},
	}
}

// batch returns an empty batch that continues at the leaf.
func (w *Writer) batch(snap *sessioncore.Snapshot) (b *batch, err error) {
	b = w.emptyBatch(snap)
	b.leaf, err = leafID(snap)
	return b, err
}

// leafID returns the id of the leaf, nil before the first entry.
func leafID(snap *sessioncore.Snapshot) (*string, error) {
	e, err := snap.Leaf()
	if err != nil || e == sessioncore.NoEntry {
		return nil, err
	}
	id, _ := snap.ID(e)
	return &id, nil
}

// hasID reports whether an entry of the session or a line of the batch has an id.
func (b *batch) hasID(id string) bool {
	_, isInBatch := b.ids[id]
	if isInBatch {
		return true
	}
	_, err := b.snap.Find(id)
	return err == nil
}

// checkID returns nil if an entry of the session or a line of the batch has the id. The error wraps
// ErrNotFound, or storage.ErrStale if the entry was overwritten.
func (b *batch) checkID(id string) error {
	_, isInBatch := b.ids[id]
	if isInBatch {
		return nil
	}
	_, err := b.snap.Verify(id)
	return err
}

// idTries is the number of attempts at a short id before a longer one is used, as in the client.
const idTries = 100

// newID returns an id that is free in the session and in the batch.
func (b *batch) newID() string {
	for range idTries {
		id := b.w.opts.NewID()
		if !b.hasID(id) {
			return id
		}
	}
	for {
		id := randomID() + randomID()
		if !b.hasID(id) {
			return id
		}
	}
}

// appendNow appends the batch's time as JSON.
func (b *batch) appendNow(dst []byte) []byte { return b.form.Append(dst, b.now) }

// entryPrefix returns the beginning of an entry like the clients', up to the type's own members.
func (b *batch) entryPrefix(kind sessioncore.EntryType, id string, parent *string) []byte {
	line := rawjson.AppendQuoted([]byte(`{"type":`), kind.String())
	line = append(line, `,"id":`...)
	line = rawjson.AppendQuoted(line, id)
	line = append(line, `,"`+b.dialect.ParentKey+`":`...)
	line = appendReference(line, parent)
	return b.appendNow(append(line, `,"timestamp":`...))
}

// add adds a line to the batch and returns its id: its own, else madeID if that is free, else a new
// one. On an error the batch is unchanged.
func (b *batch) add(d *draft, madeID string) (id string, err error) {
	if d.id != nil {
		id, _ = d.id.Text()
		if b.hasID(id) {
			return "", fmt.Errorf("%w: %q", sessioncore.ErrExists, id)
		}
	}
	parent, err := b.parentOf(d)
	if err != nil {
		return "", err
	}
	switch d.kind {
	case sessioncore.TypeLabel, sessioncore.TypeLeaf, sessioncore.TypeArchive:
		key := b.dialect.TargetKey
		target, ok := d.text.Member(key).Text()
		if ok {
			err := b.checkID(target)
			if err != nil {
				return "", fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if d.kind == sessioncore.TypeContextEdit {
		err := b.checkEdit(d, parent)
		if err != nil {
			return "", err
		}
	}
	if d.id == nil {
		id = madeID
		if id == "" || b.hasID(id) {
			id = b.newID()
		}
	}
	missing := b.missingMembers(d, id, parent)
	b.lines = append(b.complete(d, missing), '\n')
	b.ids[id] = batchLine{parent: parent, editable: d.isEditable()}
	b.leaf = b.leafAfter(d, id)
	return id, nil
}

// missingMembers returns the members among id, parent and timestamp that a line lacks, each after a comma.
func (b *batch) missingMembers(d *draft, id string, parent *string) []byte {
	var members []byte
	if d.id == nil {
		members = rawjson.AppendQuoted([]byte(`,"id":`), id)
	}
	if d.parent == nil {
		members = append(members, `,"`+b.dialect.ParentKey+`":`...)
		members = appendReference(members, parent)
	}
	if !d.hasTime {
		members = append(members, `,"timestamp":`...)
		members = b.appendNow(members)
	}
	return members
}

// parentOf returns the id of a line's parent, nil if it has none: the line's own, else the leaf. A
// summary of a branch that was left continues at the entry where the branch began. The error wraps
// ErrNotFound if no entry has the id.
func (b *batch) parentOf(d *draft) (*string, error) {
	field := b.dialect.ParentKey
	named := d.parent
	// pi's fromId is the previous leaf.
	isSummary := d.kind == sessioncore.TypeBranchSummary && b.dialect != sessioncore.Pi
	switch {
	case named == nil && !isSummary:
		return b.leaf, nil
	case named == nil: // as the client's branchWithSummary does (docs/design.md section 2)
		field = b.dialect.FromKey
		named = d.text.Member(field)
		if named.Is(rootID) || named.IsNull() {
			return nil, nil
		}
	case !named.IsString():
		return nil, nil
	}
	id, _ := named.Text()
	err := b.checkID(id)
	if err == nil && id == "" {
		err = fmt.Errorf("%w: an empty id stands for none", sessioncore.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &id, nil
}

// rootID is the fromId of a summary of a branch before the first entry (docs/format.md, Entry
// types).
const rootID = "root"

// leafAfter returns the leaf after a line with this id, nil before the first entry: the line's entry
// or, for a move, the target (docs/design.md, leaf).
func (b *batch) leafAfter(d *draft, id string) *string {
	if d.kind != b.dialect.MoveType {
		return &id
	}
	target, isMove := b.dialect.MoveTarget(d.text)
	if !isMove {
		return &id
	}
	if target.IsNull() {
		return nil
	}
	text, ok := target.Text()
	if ok && b.hasID(text) {
		return &text
	}
	if b.dialect.OwnLeaf {
		return &id
	}
	return b.leaf
}

// appendReference appends an id as JSON, or null.
func appendReference(dst []byte, id *string) []byte {
	if id == nil {
		return append(dst, "null"...)
	}
	return rawjson.AppendQuoted(dst, *id)
}

// complete returns b.lines and the line with the missing members, each after a comma, in the client's
// place: after the type, or at the end in omp's custom entries and messages.
func (b *batch) complete(d *draft, missing []byte) []byte {
	isCustom := d.kind == sessioncore.TypeCustom || d.kind == sessioncore.TypeCustomMessage
	atEnd := isCustom && b.dialect.DataFirst
	at := 0
	for m := range d.text.EachMember {
		if atEnd || m.KeyIs("type") {
			at = m.End
		}
	}
	insertion := rawjson.Edits{{
		Start: at,
		End:   at,
		Text:  string(missing),
	}}
	return insertion.AppendTo(b.lines, d.text)
}

// Unfinished reports whether text is a proper prefix of a JSON value.
func Unfinished(text []byte) bool {
	var s rawjson.Scanner
	_, st := s.SkipValue(text, 0)
	return st == rawjson.Short
}
