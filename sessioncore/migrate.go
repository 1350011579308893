package sessioncore

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// Old files are shown migrated and never changed by reading (docs/design.md section 3). Version 1 has no
// ids: entries get ids made from the file's content and hang in a chain in file order. Version 2 says
// hookMessage where later versions say custom.

// migrateLinks gives an entry of a version 1 file its id and its parent.
func (x *index) migrateLinks(rec *record, u *jsonl.Unit, n uint32) {
	rec.flags |= recMigrated
	x.ordinals = append(x.ordinals, uint32(x.values-1))
	if n > 0 {
		rec.parent = x.records[n-1].id
	}
	for try := 0; ; try++ {
		id := migratedID(x.seed, x.values-1, u.Text, try)
		if s := x.symbols.find(id[:]); s == 0 || x.symbols.symbols[s].last == 0 {
			x.setID(rec, id[:])
			return
		}
	}
}

// migratedID makes the id of the entry that is value number ordinal of a version 1 file: 8 hex digits
// like the client's, a function of the file's content alone. try counts on where one was taken.
func migratedID(seed string, ordinal int64, text []byte, try int) (id [8]byte) {
	h := sha256.New()
	h.Write([]byte("sessionfs v1 " + seed + "\x00" + strconv.FormatInt(ordinal, 10) + "\x00" + strconv.Itoa(try) + "\x00"))
	h.Write(text)
	hex.Encode(id[:], h.Sum(nil)[:4])
	return id
}

// Version 1 names a compaction's first kept entry by its number among the values read; later versions
// by its id.
const (
	oldKeptKey = "firstKeptEntryIndex"
	keptKey    = "firstKeptEntryId"
)

// keptByIndex returns the id that a version 1 compaction's firstKeptEntryIndex stands for. ok is false
// where it names the header, no entry, or no whole number: then nothing is kept.
func (s *Snapshot) keptByIndex(v rawjson.Value) (id symbol, ok bool) {
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n != math.Floor(n) || n < 1 || n > math.MaxUint32 {
		return 0, false
	}
	at, ok := slices.BinarySearch(s.ordinals, uint32(n))
	if !ok {
		return 0, false
	}
	return s.records[at].id, true
}

// migrated renders an entry that a migration changes, from its text in the file: the members that the
// client's migrations set are replaced, all others keep their bytes and order.
func (s *Snapshot) migrated(rec *record, text rawjson.Value) []byte {
	var edits rawjson.Edits
	if s.version < 2 {
		edits = s.linkEdits(edits, rec, text)
	}
	if rec.kind == TypeMessage && rec.role == RoleHookMessage {
		message := int(rec.msgOff)
		edits = hookEdit(edits, text[message:message+int(rec.msgSize)], message)
	}
	return edits.Apply(text)
}

// linkEdits replaces id, parentId and the first kept entry of a version 1 entry.
func (s *Snapshot) linkEdits(edits rawjson.Edits, rec *record, text rawjson.Value) rawjson.Edits {
	add := append(rawjson.AppendQuoted([]byte(`"id":`), s.idText(rec.id)), `,"parentId":`...)
	add = s.appendID(add, rec.parent)
	gone := []string{"id", "parentId"}
	if index := text.Member(oldKeptKey); rec.kind == TypeCompaction && index.IsNumber() {
		gone = append(gone, oldKeptKey)
		if id, ok := s.keptByIndex(index); ok {
			gone = append(gone, keptKey)
			add = s.appendID(append(add, `,"`+keptKey+`":`...), id)
		}
	}
	return edits.Object(text, 0, string(add), func(m rawjson.Member) bool {
		return slices.ContainsFunc(gone, m.KeyIs)
	})
}

// appendID appends an id as JSON: null for none.
func (s *Snapshot) appendID(dst []byte, id symbol) []byte {
	if id == 0 {
		return append(dst, "null"...)
	}
	return rawjson.AppendQuoted(dst, s.idText(id))
}

// hookEdit: version 2 says hookMessage where later versions say custom. base is the message's offset in
// the edited text.
func hookEdit(edits rawjson.Edits, message rawjson.Value, base int) rawjson.Edits {
	message.EachMember(func(m rawjson.Member) bool {
		if m.KeyIs("role") {
			edits = append(edits, rawjson.Edit{Start: base + m.End - len(m.Value), End: base + m.End, Text: `"custom"`})
		}
		return true
	})
	return edits
}
