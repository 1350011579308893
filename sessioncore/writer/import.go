package writer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file imports copies of sessions into the store (docs/design.md section 2, Import).

// Copy is a file from elsewhere. Its first Size bytes do not change.
type Copy struct {
	io.ReaderAt
	Size     int64
	Modified time.Time
	Artifact bool // it is no session, and never grows
}

// Outcome is the effect of an import.
type Outcome string

// The values of Outcome.
const (
	Added     Outcome = "new"    // no file had the name
	Grown     Outcome = "longer" // the file of that name begins the copy, and got the rest of it
	Unchanged Outcome = "same"   // the file of that name has all of it
)

const (
	// importLimit bounds the wait for other writers of the same file, such as another large import.
	importLimit = 20 * time.Second
	// pageSize is the smallest size of a page of the kernel's cache, in bytes. A process killed
	// during a write(2) leaves a part of the data that ends between two pages.
	pageSize = 4096
)

// ImportOrigin is the imported session of another agent, with the keys of omp's own import.
type ImportOrigin struct {
	Source string `json:"source"`
	ID     string `json:"sourceId"`
	Path   string `json:"sourcePath"`
	CWD    string `json:"sourceCwd"`
	// Entry ends the only branch that is imported; "" for all branches.
	Entry string `json:"-"`
	// Handover is the number of a handover, which makes a new session each time; "" for an import.
	Handover string `json:"-"`
}

// importedType is the customType of the last entry of an imported session, as omp writes it.
const importedType = "foreign_session_import"

// ImportedSession is a session that is made from another agent's.
type ImportedSession struct {
	Origin ImportOrigin
	Title  string
	Start  time.Time
	End    time.Time
	Leaf   string // the id of the current entry, "" for none
	// WriteEntries writes the entries to the session's writer.
	WriteEntries func() error
}

// WriteImported writes the file of a session that is made from another agent's. It returns the file name, which
// is the same for the same origin.
func (w *Writer) WriteImported(ctx context.Context, out io.Writer, s ImportedSession) (base string, err error) {
	f := newFile{title: cleanTitle(s.Title), titleSource: titleByAuto}
	f.dialect, f.form, err = w.storeDialect(ctx)
	if err != nil {
		return "", err
	}
	if !f.dialect.IsOMP() {
		return "", fmt.Errorf("%w: sessions of other agents, in operator's", storage.ErrUnsupported)
	}
	if s.Origin.CWD != "" {
		f.cwd = rawjson.AppendQuoted(nil, s.Origin.CWD)
	}
	if s.Origin.Handover != "" {
		f.parent = s.Origin.ID
	}
	id, originID := s.Origin.ids(s.Start)
	f.write = func(io.Writer) error {
		err := s.WriteEntries()
		if err != nil {
			return err
		}
		line, err := s.originLine(originID, f.form)
		if err != nil {
			return err
		}
		_, err = out.Write(line)
		return err
	}
	nameID := originID + "t" // so that it is another one
	err = f.content(out, id, nameID, s.Start)
	return sessionFileName(f.dialect, s.Start, id), err
}

// ids returns the id of the session that is made from an origin, and that of its entry that names the
// origin. They are the same each time, as both come from a hash of the origin.
func (from ImportOrigin) ids(start time.Time) (session, entry string) {
	identity := from.Source + "\n" + from.ID + "\n" + from.Entry
	if from.Handover != "" {
		identity += "\n" + from.Handover
	}
	sum := sha256.Sum256([]byte(identity))
	var bits [16]byte
	copy(bits[:], sum[:])
	entry = hex.EncodeToString(sum[16:20]) // bytes that are not in the session's id
	return sessionIDOf(start, bits), entry
}

// originLine returns the last entry of the session, with an id, which names the origin.
func (s *ImportedSession) originLine(id string, form rawjson.TimeForm) ([]byte, error) {
	data, err := json.Marshal(s.Origin)
	if err != nil {
		return nil, err
	}
	var parent *string
	if s.Leaf != "" {
		parent = &s.Leaf
	}
	const format = `{"type":"custom","customType":"%s","data":%s,"id":"%s","parentId":`
	line := fmt.Appendf(nil, format, importedType, data, id)
	line = appendReference(line, parent)
	line = append(line, `,"timestamp":`...)
	line = form.Append(line, s.End)
	return append(line, "}\n"...), nil
}

// importedBody returns the range of the entries, in bytes, in a session that WriteImported wrote. ok
// is false for another file, and if the session was continued since: its last entry is not the
// import's, or the user gave it a title.
func importedBody(obj io.ReaderAt, size int64) (from, to int64, ok bool) {
	head := make([]byte, min(size, maxEnd))
	err := storage.ReadFull(obj, head, 0)
	if err != nil {
		return 0, 0, false
	}
	tail := make([]byte, min(size, maxEnd))
	err = storage.ReadFull(obj, tail, size-int64(len(tail)))
	if err != nil {
		return 0, 0, false
	}
	header, _, _ := bytes.Cut(head, []byte{'\n'})
	withoutEnd := bytes.TrimSuffix(tail, []byte{'\n'})
	lastStart := bytes.LastIndexByte(withoutEnd, '\n') + 1
	last := tail[lastStart:]
	if !rawjson.IsValidObject(header) || !rawjson.IsValidObject(bytes.TrimSpace(last)) {
		return 0, 0, false
	}
	headerValue := rawjson.Value(header)
	isSession := headerValue.Member("type").Is(sessioncore.OMP.HeaderType)
	isTitled := headerValue.Member("titleSource").Is(titleByUser)
	endsInImport := rawjson.Value(last).Member("customType").Is(importedType)
	ok = isSession && !isTitled && endsInImport
	return int64(len(header)) + 1, size - int64(len(last)), ok
}

// maxEnd bounds the bytes that importedBody reads at each end: a header and an entry with paths.
const maxEnd = 64 << 10

// ErrOther means that neither of a file and its copy begins the other.
var ErrOther = errors.New("what is there is another file, and is not replaced")

// Import publishes a copy under a name, or extends the file of that name to the copy's length. It
// takes effect completely or not at all. The error is ErrOther if neither file begins the other.
func (w *Writer) Import(ctx context.Context, name string, c Copy) (Outcome, error) {
	start := time.Now()
	for {
		outcome, err := w.importOnce(ctx, name, c)
		mayPass := errors.Is(err, storage.ErrStale) || errors.Is(err, storage.ErrLocked)
		if !mayPass || time.Since(start) > importLimit {
			return outcome, err
		}
		isCancelled := !storage.Sleep(ctx, livePoll)
		if isCancelled {
			return outcome, err
		}
	}
}

// importOnce is Import without waiting for other writers.
func (w *Writer) importOnce(ctx context.Context, name string, c Copy) (Outcome, error) {
	outcome, err := w.Examine(ctx, name, c)
	if err != nil {
		return outcome, err
	}
	switch outcome {
	case Added:
		// Without an expected state, Replace fails if a file has the name meanwhile.
		r := storage.Replacement{Write: c.copyTo, Modified: c.Modified}
		err = storage.Replaced(w.opts.Journal.Replace(name, r))
	case Grown:
		err = w.change(ctx, w.store.Session(name), func(ch *change) (err error) {
			outcome, err = ch.grow(c)
			return err
		})
		if err == nil {
			err = w.opts.Journal.Sync(name)
		}
	}
	return outcome, err
}

// Examine returns the outcome that Import would have, without the lock. Its errors are Import's; beside
// one the outcome means nothing.
func (w *Writer) Examine(_ context.Context, name string, c Copy) (Outcome, error) {
	err := w.writable(name)
	if err != nil {
		return Added, err
	}
	st, err := w.store.Storage().Stat(name)
	if storage.IsMissing(err) {
		return Added, nil
	}
	if err != nil {
		return Added, err
	}
	if st.Kind != storage.KindFile {
		return Added, fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	file, err := w.store.Storage().Open(name)
	if err != nil {
		return Added, err
	}
	defer file.Close()
	outcome, _, err := compareCopy(file, c)
	return outcome, err
}

// compareCopy returns whether a copy is longer than a file, and whether the file begins the copy byte
// for byte, the title slot aside, which clients overwrite. In a session of another agent that was not
// continued only the entries are compared; then begins is false. The error is ErrOther if neither file
// begins the other.
func compareCopy(file storage.Object, c Copy) (outcome Outcome, begins bool, err error) {
	st, err := file.Stat()
	if err != nil {
		return Unchanged, false, err
	}
	start := int64(0)
	haveSlots := !c.Artifact && slotIn(file, st.Size) != nil && slotIn(c, c.Size) != nil
	if haveSlots {
		start = slotSize
	}
	begins, err = storage.SameBytes(file, start, c, start, min(st.Size, c.Size)-start)
	if err != nil {
		return Unchanged, false, err
	}
	mayGrow := !c.Artifact || st.Size == c.Size
	if begins && mayGrow {
		return compareSizes(st.Size, c.Size), true, nil
	}
	if c.Artifact {
		return Unchanged, false, ErrOther
	}
	outcome, err = compareEntries(file, st.Size, c)
	return outcome, false, err
}

// compareEntries is compareCopy for the entries of a session that was imported from another agent.
func compareEntries(file storage.Object, size int64, c Copy) (Outcome, error) {
	fileStart, fileEnd, isImport := importedBody(file, size)
	copyStart, copyEnd, isCopyImport := importedBody(c, c.Size)
	if !isImport || !isCopyImport {
		return Unchanged, ErrOther
	}
	fileSize := fileEnd - fileStart
	copySize := copyEnd - copyStart
	isSame, err := storage.SameBytes(file, fileStart, c, copyStart, min(fileSize, copySize))
	if err != nil {
		return Unchanged, err
	}
	if !isSame {
		return Unchanged, ErrOther
	}
	return compareSizes(fileSize, copySize), nil
}

// compareSizes returns the outcome for a file and a copy if one begins the other.
func compareSizes(file, copied int64) Outcome {
	if copied > file {
		return Grown
	}
	return Unchanged
}

// copyTo writes the copy. The error wraps io.ErrUnexpectedEOF if it has become shorter.
func (c Copy) copyTo(out io.Writer) error {
	memory, isInMemory := out.(*strings.Builder)
	if isInMemory { // the store needs the whole text
		memory.Grow(int(c.Size))
	}
	n, err := io.Copy(out, io.NewSectionReader(c, 0, c.Size))
	if err == nil && n < c.Size {
		err = fmt.Errorf("%w: the copy ends at %d", io.ErrUnexpectedEOF, n)
	}
	return err
}

// grow extends the session to the copy's length. A title slot that differs becomes the copy's, which
// has all entries.
func (c *change) grow(source Copy) (Outcome, error) {
	outcome, begins, err := compareCopy(c.snap.File(), source)
	if err != nil || outcome == Unchanged {
		return outcome, err
	}
	size := c.snap.Stat().Size
	onePage := size/pageSize == (source.Size-1)/pageSize // appending more than that may end half done
	isSameSlot := bytes.Equal(slotIn(c.snap.File(), size), slotIn(source, source.Size))
	if !begins || !onePage || !isSameSlot {
		return outcome, c.replace(source.copyTo, refuseGrowth)
	}
	data := make([]byte, source.Size-size)
	err = storage.ReadFull(source, data, size)
	if err != nil {
		return outcome, err
	}
	_, err = c.w.opts.Journal.Append(c.s.Name(), data)
	return outcome, err
}
