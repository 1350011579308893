package sessioncore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// Old files are shown migrated; reading never changes them (docs/design.md section 3). Version 1
// has no ids: entries get ids derived from the file's content and form a chain in file order.
// Version 2 has the role hookMessage instead of custom.

// migrateLinks sets the id and the parent of an entry of a version 1 file, which will get the number
// n. It also records the entry's number among the values.
func (x *index) migrateLinks(rec *indexRecord, u *jsonl.Unit, n uint32) {
	rec.flags |= recMigrated
	ordinal := x.values - 1 // the header is value 0
	x.ordinals = append(x.ordinals, uint32(ordinal))
	if n > 0 {
		rec.parent = x.records[n-1].id
	}
	try := 0
	for {
		id := migratedID(x.seed, ordinal, u.Text, try)
		sym := x.symbols.find(id[:])
		isFree := sym == 0 || x.symbols.symbols[sym].last == 0
		if isFree {
			x.setID(rec, id[:])
			return
		}
		try++
	}
}

// migratedID returns the id of the entry that is value number ordinal of a version 1 file: 8
// hexadecimal digits like the client's, derived from the content. Callers increase try while the id
// is in use.
func migratedID(seed string, ordinal int64, text []byte, try int) (id [8]byte) {
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "sessionfs v1 %s\x00%d\x00%d\x00", seed, ordinal, try))
	h.Write(text)
	hex.Encode(id[:], h.Sum(nil)[:4])
	return id
}

// Version 1 identifies a compaction's first kept entry by its number among the values, later
// versions by its id.
const (
	oldKeptKey = "firstKeptEntryIndex"
	keptKey    = "firstKeptEntryId"
)

// keptByIndex returns the id of a version 1 compaction's firstKeptEntryIndex. ok is false if the
// index means the header or no entry, or is no integer; then nothing is kept.
func (s *Snapshot) keptByIndex(v rawjson.Value) (id symbol, ok bool) {
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0, false
	}
	isInteger := n == math.Floor(n)
	isHeader := n < 1
	if !isInteger || isHeader || n > math.MaxUint32 {
		return 0, false
	}
	at, isEntry := slices.BinarySearch(s.ordinals, uint32(n))
	if !isEntry {
		return 0, false
	}
	return s.records[at].id, true
}

// migrated returns the migrated text of an entry, by its record and its text in the file. Other members
// keep their bytes and order.
func (s *Snapshot) migrated(rec *indexRecord, text rawjson.Value) []byte {
	var edits rawjson.Edits
	if s.version < 2 {
		edits = s.linkEdits(edits, rec, text)
	}
	if rec.kind == TypeMessage && rec.role == RoleHookMessage {
		start := int(rec.msgOff)
		end := start + int(rec.msgSize)
		edits = hookEdit(edits, text[start:end], start)
	}
	return edits.Apply(text)
}

// linkEdits adds the edits that replace id, parentId and the first kept entry of a version 1 entry.
func (s *Snapshot) linkEdits(edits rawjson.Edits, rec *indexRecord, text rawjson.Value) rawjson.Edits {
	add := rawjson.AppendQuoted([]byte(`"id":`), s.idText(rec.id))
	add = append(add, `,"parentId":`...)
	add = s.appendID(add, rec.parent)
	removed := []string{"id", "parentId"}
	index := text.Member(oldKeptKey)
	if rec.kind == TypeCompaction && index.IsNumber() {
		removed = append(removed, oldKeptKey)
		id, isKept := s.keptByIndex(index)
		if isKept {
			removed = append(removed, keptKey)
			add = append(add, `,"`+keptKey+`":`...)
			add = s.appendID(add, id)
		}
	}
	return edits.Object(text, 0, string(add), func(m rawjson.Member) bool {
		return slices.ContainsFunc(removed, m.KeyIs)
	})
}

// appendID appends an id as JSON, null for 0.
func (s *Snapshot) appendID(dst []byte, id symbol) []byte {
	if id == 0 {
		return append(dst, "null"...)
	}
	return rawjson.AppendQuoted(dst, s.idText(id))
}

// hookEdit adds the edits that make custom of the role hookMessage. base is the message's offset in
// the text that is edited. Each member of the key is edited, as the last of several would count.
func hookEdit(edits rawjson.Edits, message rawjson.Value, base int) rawjson.Edits {
	for m := range message.EachMember {
		if m.KeyIs("role") {
			edits = append(edits, rawjson.TextEdit{
				Start: base + m.End - len(m.Value),
				End:   base + m.End,
				Text:  `"custom"`,
			})
		}
	}
	return edits
}
