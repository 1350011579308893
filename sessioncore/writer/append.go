package writer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/persist"
	"sessionfs/sessioncore/storage"
)

// Append adds entries to a session, one JSON object per line, and returns their ids (docs/design.md section 2,
// append). Lines before a bad one take effect, and those that a failed write left in the file: then len(ids) says how
// many did, and the error is that of the next line. If ids has all lines and the error is not nil, the option Sync
// failed: the lines are written but may not survive a crash.
//
// Any number of lines takes one lock and one write. The cost does not depend on the length of the session.
func (w *Writer) Append(ctx context.Context, s *sessioncore.Session, lines ...[]byte) (ids []string, err error) {
	if w.opts.ReadOnly {
		return nil, fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, s.Name())
	}
	var tried tries
	for range staleTries {
		f, err := s.Format(ctx)
		if err != nil {
			return nil, err
		}
		rules := w.rules(f)
		drafts, bad := drafts(f, rules, lines)
		if ids, err = w.appendDrafts(ctx, s, f, rules, drafts, bad, &tried); !errors.Is(err, errFormat) {
			return ids, err
		}
	}
	return nil, fmt.Errorf("%w: %w", storage.ErrStale, errFormat)
}

// errFormat means that the file's format has changed since the lines were checked.
var errFormat = errors.New("the session's format changed")

// appendDrafts is Append for lines that were checked for the format f; bad is the error of the line after them. If
// the session now has another format, it writes nothing and returns errFormat.
func (w *Writer) appendDrafts(ctx context.Context, s *sessioncore.Session, f sessioncore.Format, rules persist.Rules, drafts []*draft, bad error, tried *tries) (ids []string, err error) {
	if drafts, err = w.withBlobs(ctx, s, f, drafts, tried); err != nil {
		bad = err
	}
	if len(drafts) == 0 {
		return nil, bad
	}
	var misfit error
	var added []string
	err = w.change(ctx, s, func(c *change) error {
		if c.snap.Format() != f || w.rules(f) != rules {
			return errFormat
		}
		b, err := w.batch(c.snap)
		if err != nil {
			return err
		}
		tried.begin(b)
		if added, misfit = b.addAll(drafts, tried); len(added) == 0 {
			return misfit
		}
		if len(b.lines) > 0 {
			tried.writes(added)
			if err := c.commit(b.lines); err != nil {
				return err
			}
		}
		ids = added
		return nil
	})
	if err != nil && tried.wrote && !errors.Is(err, errFormat) {
		if ids = w.left(ctx, s, drafts, tried); len(ids) == len(added) {
			err = nil
		}
	}
	if err = w.synced(s, err); err != nil {
		return ids, err
	}
	if misfit != nil {
		return ids, misfit
	}
	return ids, bad
}

// left returns the ids of those of the first lines that are in the session although writing them failed: a failed write
// is not taken back if a program without the lock wrote behind it.
func (w *Writer) left(ctx context.Context, s *sessioncore.Session, drafts []*draft, tried *tries) (ids []string) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return nil
	}
	defer snap.Release()
	for i, d := range drafts {
		if !tried.survived(snap, i, d) {
			break
		}
		ids = append(ids, tried.idOf(i))
	}
	return ids
}

// rules returns how lines of a format are written to disk.
func (w *Writer) rules(f sessioncore.Format) persist.Rules {
	return persist.Rules{Blobs: w.opts.Blobs != nil && f.Blobs, Newer: f.Slot}
}

// drafts parses lines up to the first bad one.
func drafts(f sessioncore.Format, rules persist.Rules, lines [][]byte) ([]*draft, error) {
	drafts := make([]*draft, 0, len(lines))
	for _, line := range lines {
		draft, err := parseDraft(line, f.Dialect, rules)
		if err != nil {
			return drafts, err
		}
		drafts = append(drafts, draft)
	}
	return drafts, nil
}

// addAll adds lines up to the first one that does not fit into the session, without those that an earlier try has
// brought into it. It returns the ids of both.
func (b *batch) addAll(drafts []*draft, tried *tries) (ids []string, err error) {
	for i, d := range drafts {
		id := tried.idOf(i)
		if !tried.survived(b.snap, i, d) {
			if id, err = b.add(d, id); err != nil {
				return ids, err
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// withBlobs stores the blobs of lines, and returns the lines before the first one for which that failed. It is called
// before the lock is taken, since storing takes longer than others wait for the lock. It first checks the lines
// against the session, so that a refused line leaves no blob behind.
func (w *Writer) withBlobs(ctx context.Context, s *sessioncore.Session, f sessioncore.Format, drafts []*draft, tried *tries) ([]*draft, error) {
	if !slices.ContainsFunc(drafts, func(d *draft) bool { return len(d.blobs) > 0 }) {
		return drafts, nil
	}
	snap, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	if snap.Format() != f {
		return nil, errFormat
	}
	b, err := w.batch(snap)
	if err != nil {
		return nil, err
	}
	ids, bad := b.addAll(drafts, tried)
	drafts = drafts[:len(ids)]
	for i, d := range drafts {
		for _, b := range d.blobs {
			if err := w.putBlob(b); err != nil {
				return drafts[:i], err
			}
		}
	}
	return drafts, bad
}

func (w *Writer) putBlob(b persist.Blob) error {
	hash, err := w.opts.Blobs.Put(b.Data, b.Ending)
	if err == nil && hash != persist.BlobName(b.Data) {
		err = fmt.Errorf("the blob store says %q of a blob whose name is %s", hash, persist.BlobName(b.Data))
	}
	if storage.IsMissing(err) { // which the session is not
		err = fmt.Errorf("images have no place: %v", err)
	}
	return err
}

// tries is what the tries of one append have in common. A program without the lock that replaces the file just after we
// wrote to it may have read it before or after: so a line that an earlier try wrote is lost or is in the new file, and
// its id tells which. A nil *tries is that of a write that is not tried again.
type tries struct {
	now   time.Time // the time of the first try
	ids   []string  // of the lines in their order: those that they came with, and those that were made for them
	wrote bool      // lines with these ids may be in the file
}

// begin makes the batch one of these tries.
func (t *tries) begin(b *batch) {
	if t.now.IsZero() {
		t.now = b.now
	}
	b.now = t.now
}

// idOf returns the id of line i, "" if it has none yet.
func (t *tries) idOf(i int) string {
	if t == nil || i >= len(t.ids) {
		return ""
	}
	return t.ids[i]
}

// writes notes that lines with these ids are about to be written.
func (t *tries) writes(ids []string) {
	t.wrote = true
	if len(ids) > len(t.ids) {
		t.ids = ids
	}
}

// survived reports whether line i is in the session, as an earlier try wrote it.
func (t *tries) survived(s *sessioncore.Snapshot, i int, d *draft) bool {
	id := t.idOf(i)
	if id == "" || !t.wrote {
		return false
	}
	e, err := s.Verify(id)
	if err != nil {
		return false
	}
	if d.id == nil {
		return true // nobody else knew this id
	}
	text, err := s.EntryText(e)
	return err == nil && hasMembers(text, d.text)
}

// hasMembers reports whether an entry has all members of a line. The program that carried the line over may have
// written the same values in another way.
func hasMembers(entry, line rawjson.Value) bool {
	var has, want map[string]any
	if json.Unmarshal(entry, &has) != nil || json.Unmarshal(line, &want) != nil {
		return false
	}
	for key, value := range want {
		if other, ok := has[key]; !ok || !reflect.DeepEqual(other, value) {
			return false
		}
	}
	return true
}

// tornMark is a line written after a torn line that could be continued by what is appended. We read line by line, but
// the client's parser would take the torn line and the new one for the beginning of one value and lose both
// (docs/format.md, Loading). This line, which cannot occur in JSON there, ends the value.
const tornMark = "# the line above is cut off\n"

// afterTorn prepends a newline to lines if the file's last line has none, and tornMark if it is needed.
func (c *change) afterTorn(lines []byte) ([]byte, error) {
	if c.snap.EndsLine() || len(lines) == 0 {
		return lines, nil
	}
	last, err := lastLine(c.snap)
	if err != nil {
		return nil, err
	}
	before := "\n"
	if canContinue(last) {
		before += tornMark
	}
	return append([]byte(before), lines...), nil
}

// lastLine returns the text after a file's last newline. If that is longer than any line that is read, it returns the end
// of it.
func lastLine(s *sessioncore.Snapshot) ([]byte, error) {
	size := s.Stat().Size
	for n := int64(jsonl.ChunkSize); ; n *= 2 {
		n = min(n, size)
		text := make([]byte, n)
		if err := storage.ReadFull(s.File(), text, size-n); err != nil {
			return nil, err
		}
		if at := bytes.LastIndexByte(text, '\n'); at >= 0 {
			return text[at+1:], nil
		}
		if n == size || n > jsonl.MaxLine {
			return text, nil
		}
	}
}

// canContinue reports whether an object on the next line could continue the value that line begins.
func canContinue(line []byte) bool {
	if rawjson.SkipSpace(line, 0) == len(line) {
		return false
	}
	var s rawjson.Scanner
	_, st := s.SkipValue(append(line, "\n{"...), 0)
	return st == rawjson.Short
}
