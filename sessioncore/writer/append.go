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
	err = w.writable(s.Name())
	if err != nil {
		return nil, err
	}
	a := &appending{w: w, ctx: ctx, s: s}
	for range staleTries {
		err = a.parse(lines)
		if err != nil {
			return nil, err
		}
		ids, err = a.write()
		if !errors.Is(err, errFormat) {
			return ids, err
		}
	}
	return nil, fmt.Errorf("%w: %w", storage.ErrStale, errFormat)
}

// errFormat means that the file's format has changed since the lines were checked.
var errFormat = errors.New("the session's format changed")

// appending is one call of Append with all its attempts. If a program without the lock replaces the
// file just after our write, a line is lost or in the new file, and its id tells which.
type appending struct {
	w   *Writer
	ctx context.Context
	s   *sessioncore.Session

	format sessioncore.Format // of the session when the lines were checked
	drafts []*draft           // the lines before the first bad one
	bad    error              // of the line after them

	now   time.Time // of the first attempt
	ids   []string  // of the lines in order, given or created
	wrote bool      // lines with these ids may be in the file
}

// parse sets the drafts by checking the lines for the session's present format. A bad line is no error
// of parse: it ends the drafts, and its error is a.bad.
func (a *appending) parse(lines [][]byte) (err error) {
	a.format, err = a.s.Format(a.ctx)
	if err != nil {
		return err
	}
	rules := PersistRules{
		Blobs: a.w.opts.Blobs != nil && a.format.Blobs,
		Newer: a.format.Slot,
	}
	a.drafts = make([]*draft, 0, len(lines))
	a.bad = nil
	for _, line := range lines {
		d, err := parseDraft(line, a.format.Dialect, rules)
		if err != nil {
			a.bad = err
			break
		}
		a.drafts = append(a.drafts, d)
	}
	return nil
}

// attempt is the result of one attempt at writing the lines.
type attempt struct {
	ids    []string // of the first lines: those of its batch, and those that an earlier attempt wrote
	misfit error    // of the line after them; nil if all lines fit into the session
}

// write is Append for the checked lines. If the session's format has changed, it writes nothing and
// returns errFormat.
func (a *appending) write() (ids []string, err error) {
	a.drafts, err = a.withBlobs()
	if err != nil {
		a.bad = err
	}
	if len(a.drafts) == 0 {
		return nil, a.bad
	}
	var last attempt
	err = a.w.change(a.ctx, a.s, func(c *change) error {
		return a.tryOnce(c, &last)
	})
	if errors.Is(err, errFormat) {
		return nil, err
	}
	ids = last.ids
	if err != nil {
		ids = a.survivingIDs()
		hasSucceeded := len(ids) > 0 && len(ids) == len(last.ids) // the write failed, but its lines stayed
		if !hasSucceeded {
			return ids, err
		}
	}
	err = a.w.syncAfter(a.s, nil)
	if err != nil {
		return ids, err
	}
	if last.misfit != nil {
		return ids, last.misfit
	}
	return ids, a.bad
}

// tryOnce writes the lines that are not in the session yet, up to the first that does not fit. It
// records the attempt in last, unless an error precedes the batch. If no line fits, it returns the
// misfit.
func (a *appending) tryOnce(c *change, last *attempt) error {
	b, err := a.batch(c.snap)
	if err != nil {
		return err
	}
	if a.now.IsZero() {
		a.now = b.now
	}
	b.now = a.now // all attempts write the same lines
	last.ids, last.misfit = a.addTo(b)
	if len(last.ids) == 0 {
		return last.misfit
	}
	if len(b.lines) == 0 {
		return nil // an earlier attempt wrote all lines
	}
	a.wrote = true
	if len(last.ids) > len(a.ids) {
		a.ids = last.ids
	}
	return c.commit(b.lines)
}

// batch returns an empty batch that continues at the leaf of snap. The error is errFormat if the lines
// were checked for another format.
func (a *appending) batch(snap *sessioncore.Snapshot) (*batch, error) {
	if snap.Format() != a.format {
		return nil, errFormat
	}
	return a.w.batch(snap)
}

// addTo adds the lines to b up to the first one that does not fit into the session, whose error it
// returns. It skips those that an earlier attempt wrote. The ids are those of both, in order.
func (a *appending) addTo(b *batch) (ids []string, err error) {
	for i, d := range a.drafts {
		id := a.idOf(i)
		if !a.survived(b.snap, i) {
			id, err = b.add(d, id)
			if err != nil {
				return ids, err
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// withBlobs stores the blobs of the lines and returns the lines before the first failure. The lock
// is not held, since storing takes longer than others wait for it. The lines are checked against
// the session first, so that a refused line leaves no blob behind.
func (a *appending) withBlobs() ([]*draft, error) {
	hasBlobs := func(d *draft) bool {
		return len(d.blobs) > 0
	}
	if !slices.ContainsFunc(a.drafts, hasBlobs) {
		return a.drafts, nil
	}
	snap, err := a.s.Acquire(a.ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	b, err := a.batch(snap)
	if err != nil {
		return nil, err
	}
	ids, misfit := a.addTo(b)
	fitting := a.drafts[:len(ids)]
	for i, d := range fitting {
		for _, blob := range d.blobs {
			err := a.w.putBlob(blob)
			if err != nil {
				return fitting[:i], err
			}
		}
	}
	return fitting, misfit
}

// putBlob stores an image. The error says so if the store gives it another name.
func (w *Writer) putBlob(blob BlobReference) error {
	name := BlobName(blob.Data)
	stored, err := w.opts.Blobs.Put(blob.Data, blob.Ending)
	switch {
	case storage.IsMissing(err): // not wrapped, as callers would take the session for missing
		return fmt.Errorf("images have no place: %v", err)
	case err != nil:
		return err
	case stored != name:
		return fmt.Errorf("the blob store says %q of a blob whose name is %s", stored, name)
	}
	return nil
}

// survivingIDs returns the ids of the first lines that are in the session although writing them
// failed. A failed write stays if a program without the lock appended to it. There are none if the
// session cannot be read.
func (a *appending) survivingIDs() (ids []string) {
	if !a.wrote {
		return nil
	}
	snap, err := a.s.Acquire(a.ctx)
	if err != nil {
		return nil
	}
	defer snap.Release()
	for i := range a.drafts {
		if !a.survived(snap, i) {
			break
		}
		ids = append(ids, a.idOf(i))
	}
	return ids
}

// idOf returns the id of line i, "" if it has none yet.
func (a *appending) idOf(i int) string {
	if i >= len(a.ids) {
		return ""
	}
	return a.ids[i]
}

// survived reports whether line i, as an earlier attempt wrote it, is in the session. An id that the
// caller chose may be another program's entry, so its text is compared too.
func (a *appending) survived(s *sessioncore.Snapshot, i int) bool {
	id := a.idOf(i)
	if id == "" || !a.wrote {
		return false
	}
	e, err := s.Verify(id)
	if err != nil {
		return false
	}
	if a.drafts[i].id == nil {
		return true // nobody else knew this id
	}
	text, err := s.EntryText(e)
	return err == nil && hasMembers(text, a.drafts[i].text)
}

// hasMembers reports whether an entry has all members of a line. The program that copied the line
// may have formatted the values in another way.
func hasMembers(entry, line rawjson.Value) bool {
	var has, want map[string]any
	if json.Unmarshal(entry, &has) != nil || json.Unmarshal(line, &want) != nil {
		return false
	}
	for key, wanted := range want {
		value, ok := has[key]
		if !ok || !reflect.DeepEqual(value, wanted) {
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

// lastLine returns the text after a file's last newline, or the end of a very long text. It reads more
// and more of the file's end until there is a newline in it.
func lastLine(s *sessioncore.Snapshot) ([]byte, error) {
	size := s.Stat().Size
	n := int64(jsonl.ChunkSize)
	for {
		n = min(n, size)
		text := make([]byte, n)
		err := storage.ReadFull(s.File(), text, size-n)
		if err != nil {
			return nil, err
		}
		at := bytes.LastIndexByte(text, '\n')
		if at >= 0 {
			return text[at+1:], nil
		}
		if n == size || n > jsonl.MaxLine {
			return text, nil
		}
		n *= 2
	}
}

// canContinue reports whether an object on the next line could continue the value that line begins.
func canContinue(line []byte) bool {
	isBlank := rawjson.SkipSpace(line, 0) == len(line)
	if isBlank {
		return false
	}
	withObject := append(line, "\n{"...)
	return Unfinished(withObject)
}
