package writer

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// Fork creates a new session from the path to the entry id, beside the session s, and returns its
// name in the storage (docs/design.md section 2, fork). Like the client's createBranchedSession, it
// omits label entries, appends new ones for the labels in effect, and names the parent session.
// Unlike that, it leaves no reference to an omitted entry (forkPath), so that the context at the
// fork's leaf equals the context at the entry. It also omits operator's leaf entries, as their targets
// would be missing. The title, its source and additional working directories are copied, as newer clients
// do; a title that is not "" replaces the title. ErrNotFound: no entry has that id.
//
// It only reads s: it takes no lock, and a live client does not matter.
func (w *Writer) Fork(ctx context.Context, s *sessioncore.Session, id, title string) (name string, err error) {
	err = w.writable(s.Name())
	if err != nil {
		return "", err
	}
	err = whileStale(func(int) error {
		name, err = w.forkOnce(ctx, s, id, title)
		return err
	})
	return name, err
}

// forkOnce is one attempt at a fork. ErrStale: the file was truncated or overwritten meanwhile.
func (w *Writer) forkOnce(ctx context.Context, s *sessioncore.Session, id, title string) (name string, err error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer snap.Release()
	leaf, err := snap.Find(id)
	if err != nil {
		return "", err
	}
	content, err := w.fork(snap, w.pathOf(s.Name()), leaf)
	if err != nil {
		return "", err
	}
	if title != "" {
		content.title = title
		content.titleSource = titleByUser
	}
	return w.create(ctx, path.Dir(s.Name()), content)
}

// fork returns a fork of the session in the file parent.
func (w *Writer) fork(snap *sessioncore.Snapshot, parent string, leaf sessioncore.Entry) (newFile, error) {
	header, slot, err := snap.ReadHeader()
	if err != nil {
		return newFile{}, err
	}
	route := &forkPath{snap: snap, entries: snap.Path(leaf)}
	labels, err := w.forkedLabels(route)
	if err != nil {
		return newFile{}, err
	}
	file := newFile{
		dialect: snap.Dialect(),
		form:    snap.TimeForm(),
		cwd:     header.Member("cwd"),
		parent:  parent,
		slot:    slot != nil,
		labels:  labels,
		write:   route.write,
	}
	if snap.Dialect() == sessioncore.OMP {
		file.title, file.titleSource = titleOf(header, slot)
		if shapes()["directories"].check(header) == nil {
			file.directories = sessioncore.OneLine(header.Member(directoriesKey))
		}
	}
	return file, nil
}

// directoriesKey is the member of omp's header with the working directories other than cwd.
const directoriesKey = "additionalDirectories"

// forkedLabels returns a label entry for each label in effect on the path, as a chain.
func (w *Writer) forkedLabels(route *forkPath) ([]byte, error) {
	b := w.emptyBatch(route.snap)
	onPath := map[string]bool{}
	for _, e := range route.entries {
		if !isPointer(b.snap, e) {
			id, _ := b.snap.ID(e)
			onPath[id] = true
			b.leaf = &id
		}
	}
	byPlace := func(a, b sessioncore.Label) int {
		return cmp.Compare(a.Place, b.Place)
	}
	inOrder := slices.Clone(b.snap.Labels())
	slices.SortStableFunc(inOrder, byPlace)
	for _, l := range inOrder {
		if !onPath[l.Target] {
			continue
		}
		label, err := b.snap.WholeLabelOf(l.Target)
		if err != nil {
			return nil, err
		}
		id := b.newID()
		b.lines = append(b.lines, b.labelLine(b.leaf, id, l.Target, label)...)
		b.ids[id] = batchLine{}
		b.leaf = &id
	}
	return b.lines, nil
}

// newFile is the content of a new session file.
type newFile struct {
	dialect     *sessioncore.Dialect
	form        rawjson.TimeForm
	cwd         rawjson.Value // JSON; nil if none
	parent      string
	title       string
	titleSource string                    // the author of the title; "" if unknown
	slot        bool                      // the title goes into a slot
	directories rawjson.Value             // JSON of the working directories other than cwd; nil if none
	write       func(out io.Writer) error // writes the entries; nil if there are none
	labels      []byte
}

// header returns the file's header without its closing brace.
func (f *newFile) header(id string, now time.Time) []byte {
	text := rawjson.AppendQuoted([]byte(`{"type":`), f.dialect.HeaderType)
	if f.dialect.Versioned {
		text = append(text, `,"version":`...)
		text = strconv.AppendInt(text, sessioncore.CurrentVersion, 10)
	}
	text = append(text, `,"id":`...)
	text = rawjson.AppendQuoted(text, id)
	text = append(text, `,"timestamp":`...)
	text = f.form.Append(text, now)
	if f.cwd != nil {
		text = append(text, `,"cwd":`...)
		text = append(text, f.cwd...)
	}
	if f.parent != "" {
		text = append(text, `,"`+f.dialect.ParentSessionKey+`":`...)
		text = rawjson.AppendQuoted(text, f.parent)
	}
	if len(f.directories) > 0 {
		text = append(text, `,"`+directoriesKey+`":`...)
		text = append(text, f.directories...)
	}
	return text
}

// content writes the file of a session with an id. nameID is the id of the entry with the title, in
// dialects that have one.
func (f *newFile) content(out io.Writer, id, nameID string, now time.Time) error {
	var text []byte
	if f.slot {
		text = titleSlot(f.title, f.titleSource, now.UTC().Format(rawjson.TimestampLayout))
	}
	text = append(text, f.header(id, now)...)
	for _, field := range titleFields(f.title, f.titleSource) {
		if field.JSON != "" && !f.dialect.TitleEntry {
			text = append(text, `,"`+field.Key+`":`+field.JSON...)
		}
	}
	text = append(text, "}\n"...)
	if f.title != "" && f.dialect.TitleEntry {
		b := &batch{dialect: f.dialect, now: now, form: f.form}
		text = append(text, b.nameLine(nameID, nil, f.title)...)
	}
	_, err := out.Write(text)
	if err != nil {
		return err
	}
	if f.write != nil {
		err := f.write(out)
		if err != nil {
			return err
		}
	}
	_, err = out.Write(f.labels)
	return err
}

// create creates a session file in a directory and returns its name, which nobody else has.
func (w *Writer) create(ctx context.Context, dir string, f newFile) (name string, err error) {
	now := w.opts.Now()
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	id := sessionIDOf(now, bits)
	name = path.Join(dir, sessionFileName(f.dialect, now, id))
	err = w.createNamed(ctx, name, func(out io.Writer) error {
		return f.content(out, id, w.opts.NewID(), now)
	})
	if err != nil {
		return "", fmt.Errorf("a new session: %w", err)
	}
	return name, nil
}

// forkPath is the path to a fork's leaf. The fork omits its entries that only point to others.
type forkPath struct {
	snap    *sessioncore.Snapshot
	entries []sessioncore.Entry // from the root on
}

// keptBefore returns the last kept entry before entries[i], NoEntry if there is none.
func (p *forkPath) keptBefore(i int) sessioncore.Entry {
	for _, e := range slices.Backward(p.entries[:i]) {
		if !isPointer(p.snap, e) {
			return e
		}
	}
	return sessioncore.NoEntry
}

// keptAfter returns the first kept entry after entries[i], NoEntry if there is none.
func (p *forkPath) keptAfter(i int) sessioncore.Entry {
	for _, e := range p.entries[i+1:] {
		if !isPointer(p.snap, e) {
			return e
		}
	}
	return sessioncore.NoEntry
}

// isPointer reports whether an entry only points to another one.
func isPointer(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	return s.Kind(e) == sessioncore.TypeLabel || s.Kind(e) == sessioncore.TypeLeaf
}

// write writes the entries of the path, without those that only point to others.
func (p *forkPath) write(out io.Writer) error {
	for i, e := range p.entries {
		if isPointer(p.snap, e) {
			continue
		}
		text, err := p.text(i)
		if err != nil {
			return err
		}
		_, err = out.Write(append(text, '\n'))
		if err != nil {
			return err
		}
	}
	return nil
}

// text returns the text of entries[i] with references to omitted entries replaced: a parent by the
// kept entry before it, and those of a compaction as compactionFields says.
func (p *forkPath) text(i int) ([]byte, error) {
	e := p.entries[i]
	text, err := p.snap.ShownText(e)
	if err != nil {
		return nil, err
	}
	var changed []rawjson.Field
	before := p.keptBefore(i)
	if p.replacesParent(e, before, text) {
		changed = append(changed, p.reference(p.snap.Dialect().ParentKey, before))
	}
	if p.snap.Kind(e) == sessioncore.TypeCompaction {
		changed = append(changed, p.compactionFields(text)...)
	}
	if len(changed) > 0 {
		text = rawjson.SetMembers(text, changed)
	}
	return text, nil
}

// replacesParent reports whether an entry gets another parent: its own is omitted, or in pi no kept
// entry is before it. pi's forks begin with null even where the parent was never written, as before 1.5.
func (p *forkPath) replacesParent(e, before sessioncore.Entry, text rawjson.Value) bool {
	parent := p.snap.Parent(e)
	isOmitted := parent != sessioncore.NoEntry && isPointer(p.snap, parent)
	dialect := p.snap.Dialect()
	isFirstOfPi := before == sessioncore.NoEntry && dialect == sessioncore.Pi
	isNull := text.Member(dialect.ParentKey).IsNull()
	return isOmitted || (isFirstOfPi && !isNull)
}

// reference returns a member that refers to an entry, with null for NoEntry.
func (p *forkPath) reference(key string, e sessioncore.Entry) rawjson.Field {
	var id *string
	if e != sessioncore.NoEntry {
		text, _ := p.snap.ID(e)
		id = &text
	}
	return rawjson.Field{
		Key:  key,
		JSON: string(appendReference(nil, id)),
	}
}

// replayedKey is a compaction's member with the last entry that a provider's history replaces.
const replayedKey = "providerReplayThroughEntryId"

// compactionFields returns the members of a compaction that refer to omitted entries, with kept ones in
// their place: the first kept entry becomes the next one, which is the compaction itself if it keeps
// nothing else, and the last replaced entry becomes the one before.
func (p *forkPath) compactionFields(text rawjson.Value) (fields []rawjson.Field) {
	keptKey := p.snap.Dialect().KeptKey
	first := p.omittedAt(text.Member(keptKey))
	if first >= 0 {
		next := p.keptAfter(first)
		if next != sessioncore.NoEntry {
			fields = append(fields, p.reference(keptKey, next))
		}
	}
	last := p.omittedAt(text.Member(replayedKey))
	if last >= 0 {
		before := p.keptBefore(last)
		if before != sessioncore.NoEntry {
			fields = append(fields, p.reference(replayedKey, before))
		}
	}
	return fields
}

// omittedAt returns the index on the path of the omitted entry that a value names, or -1.
func (p *forkPath) omittedAt(v rawjson.Value) int {
	id, isText := v.Text()
	if !isText {
		return -1
	}
	named, err := p.snap.Find(id)
	if err != nil || !isPointer(p.snap, named) {
		return -1
	}
	return slices.Index(p.entries, named)
}
