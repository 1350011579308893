package sessioncore

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// recRendered is the set of flags of entries that are not shown with the bytes of the file.
const recRendered = recMigrated | recManyLines

// FileRange is a range of the backing file, in bytes.
type FileRange struct{ Offset, Size int64 }

// EntryRange returns the range in the backing file of an entry's file, with its newline. ok is false for the few
// entries that are rendered or do not end their line.
func (s *Snapshot) EntryRange(e Entry) (r FileRange, ok bool) {
	rec := &s.records[e]
	return FileRange{rec.off, int64(rec.size) + 1}, rec.flags&recRendered == 0 && rec.flags&recEndsLine != 0
}

// TextOffset returns the offset of an entry's text in the backing file.
func (s *Snapshot) TextOffset(e Entry) int64 { return s.records[e].off }

// MigratedRange returns the range in the backing file of the text of an entry that a migration changes. ok is false
// for other entries.
func (s *Snapshot) MigratedRange(e Entry) (r FileRange, ok bool) {
	rec := &s.records[e]
	return FileRange{rec.off, int64(rec.size)}, rec.flags&recMigrated != 0
}

// EntryState tells one content of an entry's file from another by size and checksum.
type EntryState struct {
	Size int64  // of the file, in bytes
	Sum  uint32 // CRC-32C of the text that is shown
}

// EntryState returns the state of an entry's file in entries/. The entry is read only if a migration changes it.
func (s *Snapshot) EntryState(e Entry) (EntryState, error) {
	rec := &s.records[e]
	if rec.flags&recMigrated == 0 {
		return EntryState{int64(rec.size) + 1, rec.crc}, nil // line breaks inside are replaced by as many blanks
	}
	text, err := s.ShownText(e)
	return EntryState{int64(len(text)) + 1, jsonl.Checksum(text)}, err
}

// EntryDocument returns an entry's file in entries/: the text as persisted and a newline (docs/design.md,
// entries/).
func (s *Snapshot) EntryDocument(e Entry) (*document.Document, error) {
	rec := &s.records[e]
	if rec.flags&recRendered == 0 {
		d := document.New(s, nil, nil)
		if r, ok := s.EntryRange(e); ok {
			d.AddRange(r.Offset, r.Size)
		} else {
			d.AddRange(rec.off, int64(rec.size))
			d.AddText("\n")
		}
		return d, nil
	}
	text, err := s.ShownText(e)
	if err != nil {
		return nil, err
	}
	return document.OfText(s, append(text, '\n')), nil
}

// ShownText returns an entry's text as its file in entries/ shows it: migrated, on one line, without the newline.
func (s *Snapshot) ShownText(e Entry) (rawjson.Value, error) {
	rec := &s.records[e]
	text, err := s.EntryText(e)
	if err != nil {
		return nil, err
	}
	if rec.flags&recMigrated != 0 {
		text = s.migrated(rec, text)
	}
	return OneLine(text), nil
}

// LoadedText returns an entry's text as a client has it once it is loaded: migrated, well-formed, and on one line.
// same reports that this is the text of the file, and refs that it may have references to blobs, which are left.
func (s *Snapshot) LoadedText(e Entry) (text rawjson.Value, same, refs bool, err error) {
	rec := &s.records[e]
	refs = rec.flags&recBlob != 0
	if text, err = s.EntryText(e); err != nil || rec.flags&(recMigrated|recIllFormed|recBigNumber|recManyLines) == 0 {
		return text, true, refs, err
	}
	if rec.flags&recMigrated != 0 {
		text = s.migrated(rec, text)
	}
	var none document.Resolver
	edits, err := none.TextEdits(nil, text, 0)
	return slices.Clip(edits.Apply(text)), false, refs, err
}

// OneLine replaces the line breaks in text by as many blanks.
func OneLine(text rawjson.Value) rawjson.Value {
	if !manyLines(text) {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("  "))
	return bytes.ReplaceAll(text, []byte("\n"), []byte(" "))
}
