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
	"sessionfs/sessioncore/storage"
)

// Append adds entries to a session, one JSON object per line, and returns their ids (docs/design.md
// section 2, append). On an error, the first len(ids) lines are in the file: those before a bad
// line, or those that a failed write left. If ids has all lines, the option Sync failed: they may
// not survive a crash.
//
// Any number of lines takes one lock and one write, independent of the session's length.
func (w *Writer) Append(ctx context.Context, s *sessioncore.Session, lines ...[]byte) (ids []string, err error) {
	if w.opts.ReadOnly {
		return nil, fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, s.Name())
	}
	var attempts attemptLog
	for range staleTries {
		f, err := s.Format(ctx)
		if err != nil {
			return nil, err
		}
		drafts, bad := parseDrafts(f, w.rules(f), lines)
		if ids, err = w.appendDrafts(ctx, s, f, drafts, bad, &attempts); !errors.Is(err, errFormat) {
			return ids, err
		}
	}
	return nil, fmt.Errorf("%w: %w", storage.ErrStale, errFormat)
}

// errFormat means that the file's format has changed since the lines were checked.
var errFormat = errors.New("the session's format changed")

// appendDrafts is Append for lines checked for the format f; bad is the error of the line after
// them. If the session's format has changed, it writes nothing and returns errFormat.
func (w *Writer) appendDrafts(
	ctx context.Context, s *sessioncore.Session, f sessioncore.Format, drafts []*draft, bad error, attempts *attemptLog,
) (ids []string, err error) {
	if drafts, err = w.withBlobs(ctx, s, f, drafts, attempts); err != nil {
		bad = err
	}
	if len(drafts) == 0 {
		return nil, bad
	}
	var misfit error
	var added []string
	err = w.change(ctx, s, func(c *change) error {
		if c.snap.Format() != f {
			return errFormat
		}
		b, err := w.batch(c.snap)
		if err != nil {
			return err
		}
		if attempts.now.IsZero() {
			attempts.now = b.now
		}
		b.now = attempts.now
		if added, misfit = b.addAll(drafts, attempts); len(added) == 0 {
			return misfit
		}
		if len(b.lines) > 0 {
			attempts.wrote = true
			if len(added) > len(attempts.ids) {
				attempts.ids = added
			}
			if err := c.commit(b.lines); err != nil {
				return err
			}
		}
		ids = added
		return nil
	})
	if err != nil && attempts.wrote && !errors.Is(err, errFormat) {
		if ids = w.survivingIDs(ctx, s, drafts, attempts); len(ids) == len(added) {
			err = nil
		}
	}
	if err = w.syncAfter(s, err); err != nil {
		return ids, err
	}
	if misfit != nil {
		return ids, misfit
	}
	return ids, bad
}

// survivingIDs returns the ids of the first lines that are in the session although writing them
// failed. A failed write stays if a program without the lock appended to it.
func (w *Writer) survivingIDs(ctx context.Context, s *sessioncore.Session, drafts []*draft, t *attemptLog) []string {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return nil
	}
	defer snap.Release()
	var ids []string
	for i, d := range drafts {
		if !t.survived(snap, i, d) {
			break
		}
		ids = append(ids, t.idOf(i))
	}
	return ids
}

// rules returns how lines of a format are persisted.
func (w *Writer) rules(f sessioncore.Format) PersistRules {
	return PersistRules{Blobs: w.opts.Blobs != nil && f.Blobs, Newer: f.Slot}
}

// parseDrafts parses lines up to the first bad one.
func parseDrafts(f sessioncore.Format, rules PersistRules, lines [][]byte) ([]*draft, error) {
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

// addAll adds lines up to the first one that does not fit into the session. It skips those that an
// earlier attempt wrote, and returns the ids of both.
func (b *batch) addAll(drafts []*draft, attempts *attemptLog) (ids []string, err error) {
	for i, d := range drafts {
		id := attempts.idOf(i)
		if !attempts.survived(b.snap, i, d) {
			if id, err = b.add(d, id); err != nil {
				return ids, err
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// withBlobs stores the blobs of lines and returns the lines before the first failure. Callers do
// not hold the lock, since storing takes longer than others wait for it. The lines are checked
// against the session first, so that a refused line leaves no blob behind.
func (w *Writer) withBlobs(
	ctx context.Context, s *sessioncore.Session, f sessioncore.Format, drafts []*draft, attempts *attemptLog,
) ([]*draft, error) {
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
	ids, bad := b.addAll(drafts, attempts)
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

func (w *Writer) putBlob(b Blob) error {
	hash, err := w.opts.Blobs.Put(b.Data, b.Ending)
	if err == nil && hash != BlobName(b.Data) {
		err = fmt.Errorf("the blob store says %q of a blob whose name is %s", hash, BlobName(b.Data))
	}
	if storage.IsMissing(err) { // it would mean that the session is missing
		err = fmt.Errorf("images have no place: %v", err)
	}
	return err
}

// attemptLog is shared by the attempts of one append. If a program without the lock replaces the
// file just after our write, the line is lost or in the new file, and its id tells which. A nil
// *attemptLog is that of a write without retries.
type attemptLog struct {
	now   time.Time // of the first attempt
	ids   []string  // of the lines in order, given or created
	wrote bool      // lines with these ids may be in the file
}

// idOf returns the id of line i, "" if it has none yet.
func (t *attemptLog) idOf(i int) string {
	if t == nil || i >= len(t.ids) {
		return ""
	}
	return t.ids[i]
}

// survived reports whether line i, as an earlier attempt wrote it, is in the session.
func (t *attemptLog) survived(s *sessioncore.Snapshot, i int, d *draft) bool {
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

// hasMembers reports whether an entry has all members of a line. The program that copied the line
// may have formatted the values in another way.
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

// tornMark is a line that ends a torn value before an appended line. We read line by line, but the
// client's parser would take both for one value and lose them (docs/format.md, Loading). The mark
// cannot occur in JSON there.
const tornMark = "# the line above is cut off\n"

// afterTorn prepends a newline to lines if the file's last line has none, and tornMark if needed.
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

// lastLine returns the text after a file's last newline, or the end of a very long text.
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
	return rawjson.SkipSpace(line, 0) < len(line) && Unfinished(append(line, "\n{"...))
}
