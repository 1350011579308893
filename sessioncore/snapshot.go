package sessioncore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Entry is the number of an entry in a snapshot, in file order from 0.
type Entry int32

// NoEntry stands for no entry, such as the leaf before the first entry or the parent of a root.
const NoEntry Entry = -1

// Snapshot is one state of a session: an index of a pinned file, valid from Session.Acquire until
// Release. It is immutable and safe for concurrent use.
type Snapshot struct {
	index *index
	refs  atomic.Int32
	contents
	fingerprints
	move    *leafMove // position of the leaf in memory; nil if there is none
	toBlobs bool      // see Format

	serial  int64       // unique among all snapshots of the process
	settled atomic.Bool // the head was compared when the file's times no longer hid changes

	treeOnce sync.Once
	tree     *Tree
	labels   labels

	branchMu sync.Mutex                     // guards branches
	branches *simplelru.LRU[Entry, *Branch] // nil until one is asked for
}

var serials atomic.Int64

// view returns a snapshot of the index, in an agent directory of the program root. It has one
// reference, for the caller, and no fingerprints.
func (x *index) view(root Program) *Snapshot {
	s := &Snapshot{index: x, contents: x.contents, serial: serials.Add(1)}
	s.dialect = x.dialect.OfProgram(ProgramOfSession(root, x.marks))
	s.toBlobs = !x.dialect.IsOMP() || keepsBlobs(root, x.marks)
	s.refs.Store(1)
	x.snapshots.Add(1)
	return s
}

// retain adds a reference and reports true, unless the snapshot was already released.
func (s *Snapshot) retain() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Retain adds a reference, which needs its own Release. Callers must already hold a reference.
func (s *Snapshot) Retain() { s.refs.Add(1) }

// Release drops a reference. The last one closes the pinned file unless other snapshots share it.
func (s *Snapshot) Release() {
	if s.refs.Add(-1) == 0 && s.index.snapshots.Add(-1) == 0 {
		_ = s.index.file.Close()
	}
}

// Shared returns a value that is shared by all snapshots of the index under key, and calls create
// on first use. An entry is the same in all of them. As in a context.Context, key must be of the
// caller's own type. The value must be safe for concurrent use; it lives as long as the index.
func (s *Snapshot) Shared(key any, create func() any) any {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	fact, ok := s.index.facts[key]
	if !ok {
		if s.index.facts == nil {
			s.index.facts = map[any]any{}
		}
		fact = create()
		s.index.facts[key] = fact
	}
	return fact
}

// Stat returns the state of the backing file when the snapshot was made.
func (s *Snapshot) Stat() storage.Stat { return s.stat }

// Serial returns a number that is unique among the snapshots of this process.
func (s *Snapshot) Serial() int64 { return s.serial }

// File returns the pinned file. It must not be used after Release.
func (s *Snapshot) File() storage.Object { return s.index.file }

// Unchanged returns nil if both indexed ends of the pinned file are as they were. Otherwise the error
// wraps storage.ErrStale: the file was overwritten in place, which clients do only with the title slot.
func (s *Snapshot) Unchanged() error {
	st, err := s.index.file.Stat()
	if err != nil || st.Token == s.stat.Token {
		return err
	}
	if st.Size < s.stat.Size || !s.match(s.index.file, s.index.file) {
		return s.overwritten("the file")
	}
	return nil
}

// ReadAt reads the pinned file; see document.SnapshotSource.
func (s *Snapshot) ReadAt(p []byte, off int64) (int, error) { return s.index.file.ReadAt(p, off) }

// Changed implements document.SnapshotSource.
func (s *Snapshot) Changed() (now storage.Token, changed bool, err error) {
	st, err := s.index.file.Stat()
	return st.Token, st.Token != s.stat.Token || s.index.confirmed.hasGrowth(), err
}

// CheckRange implements document.SnapshotSource. After an error no entry is known to be verified.
func (s *Snapshot) CheckRange(text []byte, off int64, now storage.Token, known *document.CheckedEntry) error {
	end := off + int64(len(text))
	first := sort.Search(len(s.records), func(i int) bool {
		return s.records[i].end() > off
	})
	for i := first; i < len(s.records); i++ {
		rec := &s.records[i]
		if rec.off >= end {
			return nil
		}
		e := Entry(i)
		isWhole := rec.off >= off && rec.end() <= end
		if isWhole {
			err := s.check(e, text[rec.off-off:rec.end()-off])
			if err != nil {
				*known = document.CheckedEntry{}
				return err
			}
			continue
		}
		checked := document.CheckedEntry{Entry: int32(e), In: now}
		if *known == checked || s.index.confirmed.has(e, now) {
			continue
		}
		err := s.checkPart(e, text, off)
		if err != nil {
			*known = document.CheckedEntry{}
			return err
		}
		*known = checked
		s.index.confirmed.add(now, e)
	}
	return nil
}

// EndsLine reports whether the indexed part is empty or ends in a newline.
func (s *Snapshot) EndsLine() bool { return s.endsLine }

// Len returns the number of entries.
func (s *Snapshot) Len() int { return len(s.records) }

// Version returns the version of the file on disk.
func (s *Snapshot) Version() int { return s.version }

func (s *Snapshot) idText(id symbol) string { return string(s.symbols.text(id)) }

// ID returns an entry's id as WTF-8 text. ok is false if it has none.
func (s *Snapshot) ID(e Entry) (id string, ok bool) {
	sym := s.records[e].id
	if sym == 0 {
		return "", false
	}
	return s.idText(sym), true
}

// Kind returns an entry's type.
func (s *Snapshot) Kind(e Entry) EntryType { return s.records[e].kind }

// Time returns an entry's timestamp. In place of an invalid one it returns the entry's before it, or
// the header's (docs/design.md, entries/).
func (s *Snapshot) Time(e Entry) time.Time { return time.UnixMilli(s.records[e].time) }

// OwnTime returns an entry's timestamp. ok is false if there is none or it cannot be read.
func (s *Snapshot) OwnTime(e Entry) (t time.Time, ok bool) {
	rec := &s.records[e]
	return time.UnixMilli(rec.time), rec.flags&recTimed != 0
}

// Role returns the role of an entry's message, RoleOther for entries that are not messages.
func (s *Snapshot) Role(e Entry) Role { return s.records[e].role }

// IsMessage reports whether an entry is a message of a role.
func (s *Snapshot) IsMessage(e Entry, role Role) bool {
	return s.Kind(e) == TypeMessage && s.Role(e) == role
}

// CompareNewest orders entries by time, the newest first. Of equal times, the later entry in the
// file is the newer.
func (s *Snapshot) CompareNewest(a, b Entry) int {
	byTime := cmp.Compare(s.records[b].time, s.records[a].time)
	if byTime != 0 {
		return byTime
	}
	return cmp.Compare(b, a)
}

// Message returns the value of the key "message" in an entry's text, nil if there is none.
func (s *Snapshot) Message(e Entry, text rawjson.Value) rawjson.Value {
	rec := &s.records[e]
	return text[rec.msgOff : rec.msgOff+rec.msgSize]
}

// CostRange returns the range of the file from the first to the last of the members "provider",
// "model", "responseModel" and "usage" of an entry's message; the size is 0 if it has none.
func (s *Snapshot) CostRange(e Entry) FileRange {
	rec := &s.records[e]
	return FileRange{
		Offset: rec.off + int64(rec.costOff),
		Size:   int64(rec.costSize),
	}
}

// HeaderTime returns the header's timestamp, the epoch if it cannot be read.
func (s *Snapshot) HeaderTime() time.Time { return time.UnixMilli(s.header.time) }

// newest returns the last entry with an id, which counts (docs/format.md, Loading). It is NoEntry if
// the snapshot has none, and for the id 0.
func (s *Snapshot) newest(id symbol) Entry {
	isLater := int(id) >= len(s.symbols.symbols) // added to the index after this snapshot was made
	if id == 0 || isLater {
		return NoEntry
	}
	last := atomic.LoadUint32(&s.symbols.symbols[id].last)
	if int(last) <= len(s.records) {
		return Entry(last) - 1
	}
	// The id was repeated after this snapshot was made.
	for e := len(s.records) - 1; e >= 0; e-- {
		if s.records[e].id == id {
			return Entry(e)
		}
	}
	return NoEntry
}

// Find returns the last entry with an id (WTF-8 text). The error wraps ErrNotFound.
func (s *Snapshot) Find(id string) (Entry, error) {
	e := s.newest(s.symbols.find([]byte(id)))
	if e != NoEntry {
		return e, nil
	}
	return NoEntry, fmt.Errorf("%w: %q", ErrNotFound, id)
}

// overwritten returns an error that wraps ErrStale for a part of the file that has changed. The
// next Acquire then reads the file as a whole.
func (s *Snapshot) overwritten(part string) error {
	s.index.overwritten.Store(true)
	return fmt.Errorf("%w: %s was overwritten in place", storage.ErrStale, part)
}

// Verify returns the entry with an id like Find, and verifies its text, or all texts if there is no
// such entry. If one was overwritten, the error wraps storage.ErrStale, and the next Acquire reads
// the file as a whole. Writers call Verify before they refer to an entry.
func (s *Snapshot) Verify(id string) (Entry, error) {
	e, err := s.Find(id)
	if err == nil {
		_, err = s.EntryText(e)
		return e, err
	}
	overwritten := s.ConfirmAll(context.Background())
	if overwritten != nil {
		return e, overwritten
	}
	return e, err
}

// Parent returns the entry of an entry's parentId, or NoEntry. It may be the entry itself.
func (s *Snapshot) Parent(e Entry) Entry { return s.newest(s.records[e].parent) }

// Name returns the name of an entry's file in entries/, without the suffix (docs/design.md section
// 1, Names). In a directory with fixed names, an id that equals one of them has its first byte
// encoded.
func (s *Snapshot) Name(e Entry, fixed ...string) string {
	rec := &s.records[e]
	switch {
	case rec.id == 0:
		return fmt.Sprintf("~%d", rec.line)
	case s.newest(rec.id) != e:
		return fmt.Sprintf("%s~%d", names.FileName(s.idText(rec.id)), rec.line)
	}
	return names.FileNameAmong(s.idText(rec.id), fixed)
}

// FindName returns the confirmed entry of a Name. The error wraps ErrNotFound or is Confirm's.
func (s *Snapshot) FindName(name string, fixed ...string) (Entry, error) {
	e := s.newest(s.findID(name, fixed))
	if e != NoEntry {
		return e, s.Confirm(context.Background(), e)
	}
	e = s.findNumbered(name)
	if e != NoEntry {
		return e, s.Confirm(context.Background(), e)
	}
	return NoEntry, fmt.Errorf("%w: %q", ErrNotFound, name)
}

// findNumbered returns the entry of a Name that ends with the entry's line, or NoEntry.
func (s *Snapshot) findNumbered(name string) Entry {
	base, line, ok := names.LineSuffix(name)
	if !ok {
		return NoEntry
	}
	e := s.atLine(line)
	if e == NoEntry || s.Name(e) != name {
		return NoEntry
	}
	hasID := s.records[e].id != 0
	if base == "" && hasID {
		return NoEntry // only a name without an id is a line alone
	}
	return e
}

// FindBranch is FindName for entries with an id, the only ones with branches (docs/format.md,
// Loading).
func (s *Snapshot) FindBranch(name string, fixed ...string) (Entry, error) {
	e, err := s.FindName(name, fixed...)
	if err == nil && s.records[e].id == 0 {
		return NoEntry, fmt.Errorf("%w: %q has no id", ErrNotFound, name)
	}
	return e, err
}

// findID returns the id of a name in a directory with those fixed names, or 0. A name that is cut does
// not contain its id, so the long ids are searched for its hash.
func (s *Snapshot) findID(name string, fixed []string) symbol {
	whole, isWhole := names.DecodeNameAmong(name, fixed)
	if isWhole {
		return s.symbols.find([]byte(whole))
	}
	hash, isCut := names.CutName(name)
	if !isCut {
		return 0
	}
	for _, id := range s.longIDs {
		text := s.symbols.text(id)
		if names.Hash(text) == hash && names.FileName(string(text)) == name {
			return id
		}
	}
	return 0
}

// atLine returns the entry that begins on a line, or NoEntry.
func (s *Snapshot) atLine(line int64) Entry {
	i := sort.Search(len(s.records), func(i int) bool {
		return int64(s.records[i].line) >= line
	})
	if i < len(s.records) && int64(s.records[i].line) == line {
		return Entry(i)
	}
	return NoEntry
}

// read reads a range of the file, in bytes. The error wraps storage.ErrStale if the file is shorter.
func (s *Snapshot) read(off, size int64) (rawjson.Value, error) {
	b := make([]byte, size)
	err := storage.ReadFull(s.index.file, b, off)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// EntryText reads an entry's text and verifies it; the error wraps storage.ErrStale if it was
// overwritten. Callers rely on valid JSON.
func (s *Snapshot) EntryText(e Entry) (rawjson.Value, error) {
	rec := &s.records[e]
	v, err := s.read(rec.off, int64(rec.size))
	if err == nil {
		err = s.check(e, v)
	}
	return v, err
}

// check compares an entry's text, which may be in parts, with the checksum in the index. The error
// wraps storage.ErrStale.
func (s *Snapshot) check(e Entry, parts ...[]byte) error {
	if jsonl.Checksum(parts...) != s.records[e].crc {
		return s.overwritten("entry " + s.Name(e))
	}
	return nil
}

// checkPart verifies an entry. text, read at off, overlaps it; checkPart reads the parts of the entry
// before and after that. Errors come from read and check.
func (s *Snapshot) checkPart(e Entry, text []byte, off int64) error {
	rec := &s.records[e]
	end := rec.end()
	from := max(rec.off, off)
	to := min(end, off+int64(len(text)))
	before, err := s.read(rec.off, from-rec.off)
	if err != nil {
		return err
	}
	after, err := s.read(to, end-to)
	if err != nil {
		return err
	}
	return s.check(e, before, text[from-off:to-off], after)
}

// GrewFrom reports whether s shows the grown file of an earlier snapshot, as far as the
// fingerprints tell.
func (s *Snapshot) GrewFrom(earlier *Snapshot) bool {
	return s.index == earlier.index && s.stat.Size > earlier.stat.Size
}

// Path returns the entries from the root to e. In a cycle, it stops at the first repeated entry.
func (s *Snapshot) Path(e Entry) []Entry {
	var path []Entry
	seen := newBitset(len(s.records))
	for e != NoEntry && !seen.has(e) {
		seen.add(e)
		path = append(path, e)
		e = s.Parent(e)
	}
	slices.Reverse(path)
	return path
}

// bitset is a set of entries.
type bitset []uint64

func newBitset(n int) bitset      { return make(bitset, (n+63)/64) }
func (b bitset) has(e Entry) bool { return b[e>>6]&(1<<(e&63)) != 0 }
func (b bitset) add(e Entry)      { b[e>>6] |= 1 << (e & 63) }
func manyLines(text []byte) bool  { return bytes.IndexByte(text, '\n') >= 0 }
