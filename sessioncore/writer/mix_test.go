package writer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const (
	mixWriters = 6
	mixWrites  = 60 // of each
	mixPlain   = "scope/plain.jsonl"
)

// mixFiles are the sessions that all write to: with a title in the header, with a slot, and of version 1.
var mixFiles = map[string]string{
	mixPlain:           plainFile,
	"scope/slot.jsonl": string(titleSlot("old", titleByUser, plainNow)) + plainFile,
	"scope/old.jsonl": `{"type":"session","id":"s1","timestamp":"` + plainNow + `"}` + "\n" +
		`{"type":"message","message":{"role":"user","content":"x"}}` + "\n",
}

// mixing is a Writer over an unruly storage, and one goroutine's part of the work.
type mixing struct {
	t     *testing.T
	w     *Writer
	store *sessioncore.Store
	files *unrulyStorage

	mu    sync.Mutex // guards those below
	acked map[string][]string
	forks map[string]string // by name, the id of the entry
}

// TestMix: several goroutines write and read beside each other and beside a program that appends under the lock, over a
// storage that fails, cuts short, holds up and lets overtake. What was acknowledged is there, once, whole and in its
// order; what was refused is not; and all works again when the storage does.
func TestMix(t *testing.T) {
	level := slog.SetLogLoggerLevel(slog.LevelError) // each fault that changes no result is a warning
	t.Cleanup(func() { slog.SetLogLoggerLevel(level) })
	storages := map[string]func(t *testing.T) storage.Storage{
		"memory": func(*testing.T) storage.Storage { return memory.New() },
		"dir":    func(t *testing.T) storage.Storage { return sessiontest.OpenDir(t, t.TempDir()) },
	}
	faults := map[string]int{}
	for name, open := range storages {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				below := open(t)
				m := &mixing{
					t: t, files: newUnruly(below, seed), acked: map[string][]string{}, forks: map[string]string{},
				}
				for name, text := range mixFiles {
					putFile(t, below, name, text)
				}
				opts := Options{Journal: m.files, Sync: seed == 2, Blobs: &memBlobs{blobs: map[string]string{}}}
				m.store = sessioncore.NewStore(m.files)
				m.w = New(m.store, opts)
				var all sync.WaitGroup
				for n := range mixWriters {
					all.Go(func() { m.work(n, rand.New(rand.NewPCG(seed, uint64(n)+1))) })
				}
				all.Go(func() { m.beside(below) })
				all.Wait()
				for call, n := range m.files.faults {
					faults[call] += n
				}
				m.files.calm.Store(true)
				m.check()
				m.store.Close()
				require.Zero(t, m.files.open.Load(), "objects are left open")
				if s, ok := below.(*dir.Storage); ok {
					require.Empty(t, storagetest.Leftovers(t, s.Path()))
				}
			})
		}
	}
	for _, call := range []string{"Append", "Append, a part", "Replace", "Replace, a part", "Overwrite", "Sync", "Open", "ReadAt", "Stat", "Lock"} {
		require.NotZero(t, faults[call], "faults of %s, without which the test shows nothing: %v", call, faults)
	}
}

// work does the random writes and reads of goroutine n.
func (m *mixing) work(n int, rnd *rand.Rand) {
	ctx := context.Background()
	var own *sessioncore.Session
	for i := range mixWrites {
		name := []string{"scope/plain.jsonl", "scope/slot.jsonl", "scope/old.jsonl"}[rnd.IntN(3)]
		s := m.store.Session(name)
		id := fmt.Sprintf("w%d-%d", n, i)
		var err error
		switch rnd.IntN(10) {
		case 0:
			err = m.w.SetTitle(ctx, s, "title "+id)
		case 1:
			err = m.w.SetLabel(ctx, m.store.Session("scope/plain.jsonl"), "a", "label "+id)
		case 2:
			err = m.w.MoveLeaf(ctx, m.store.Session("scope/plain.jsonl"), new([]string{"a", "b"}[i%2]))
		case 3:
			var fork string
			if fork, err = m.w.Fork(ctx, m.store.Session("scope/slot.jsonl"), "b", ""); err == nil {
				m.mu.Lock()
				m.forks[fork] = "b"
				m.mu.Unlock()
			}
		case 4:
			var made string
			if made, err = m.w.NewSession(ctx, NewSession{Create: true, CWD: fmt.Sprintf("/p%d", n)}); err == nil {
				own = m.store.Session(made)
				m.ack(made)
			}
		case 5:
			if err = m.read(s); errors.Is(err, storage.ErrStale) {
				err = nil // a write that was cut short was taken back while it was read
			}
		default:
			if own != nil && rnd.IntN(3) == 0 {
				s = own
			}
			err = m.append(s, id, rnd)
		}
		m.allowed(err)
	}
}

// append appends one entry or three, with ids that begin with id.
func (m *mixing) append(s *sessioncore.Session, id string, rnd *rand.Rand) error {
	entries := 1
	if rnd.IntN(2) == 0 {
		entries = 3
	}
	var ids []string
	var lines [][]byte
	for i := range entries {
		entryID := fmt.Sprintf("%s-%d", id, i)
		data := strings.Repeat(entryID+" ", rnd.IntN(200))
		line := `{"type":"custom","customType":"t","id":"` + entryID + `","data":"` + data + `"}`
		if rnd.IntN(4) == 0 {
			line = strings.Replace(testAnswer, `{"type"`, `{"id":"`+entryID+`","type"`, 1)
		}
		ids = append(ids, entryID)
		lines = append(lines, []byte(line))
	}
	added, err := m.w.Append(context.Background(), s, lines...)
	if len(added) > 0 && !slices.Equal(added, ids[:len(added)]) {
		m.t.Errorf("%v were added, not %v", added, ids)
	}
	m.ack(s.Name(), added...)
	return err
}

// ack records entries of a session as acknowledged.
func (m *mixing) ack(name string, ids ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked[name] = append(m.acked[name], ids...)
}

// read renders the context of a session: it is whole, or an error.
func (m *mixing) read(s *sessioncore.Session) error {
	ctx := context.Background()
	snap, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	defer snap.Release()
	leaf, err := snap.Leaf()
	if err != nil || leaf == sessioncore.NoEntry {
		return err
	}
	doc, err := snap.Context(ctx, leaf, nil)
	if err != nil {
		return err
	}
	defer doc.Close()
	text := make([]byte, doc.Size())
	if n, err := doc.ReadAt(text, 0); n < len(text) {
		return err
	}
	if !json.Valid(text) {
		m.t.Errorf("the context of %s is no JSON: %.300q", s.Name(), text)
	}
	return nil
}

// beside appends under the lock as another program does, past the faults.
func (m *mixing) beside(files storage.Storage) {
	for i := range mixWrites {
		id := fmt.Sprintf("other-%d", i)
		unlock, err := files.Lock(context.Background(), mixPlain)
		if errors.Is(err, storage.ErrLocked) {
			continue // the machine is busy
		}
		line := `{"type":"custom","customType":"t","id":"` + id + `","parentId":"a","timestamp":"` + plainNow + `"}` + "\n"
		if err == nil {
			_, err = files.Append(mixPlain, append([]byte("\n"), line...)) // behind what may be torn
		}
		if err == nil {
			err = unlock()
		}
		if err != nil {
			m.t.Error(err)
			return
		}
		m.ack(mixPlain, id)
	}
}

// allowed fails the test for an error that is neither an injected one nor that of a busy machine.
func (m *mixing) allowed(err error) {
	if err == nil || errors.Is(err, errUnruly) || errors.Is(err, storage.ErrLocked) {
		return
	}
	m.t.Errorf("%v", err)
}

// check holds every session against what was acknowledged.
func (m *mixing) check() {
	files := m.store.Storage()
	for name := range mixFiles {
		m.ack(name)
	}
	for fork := range m.forks {
		require.Contains(m.t, fileContent(m.t, files, fork), `"id":"b"`)
	}
	for name, acked := range m.acked {
		s := m.store.Session(name)
		_, err := m.w.Append(context.Background(), s, []byte(`{"type":"custom","customType":"t","id":"last"}`))
		require.NoError(m.t, err, "%s: afterwards it works", name)
		m.checkFile(name, fileContent(m.t, files, name), acked)
		require.NoError(m.t, m.read(s))
	}
}

// checkFile checks that the acknowledged entries are in a file once, in the order of each writer, that no others of a writer
// are, and that no more lines are torn than appends left a part.
func (m *mixing) checkFile(name, text string, acked []string) {
	found := map[string][]string{} // by writer
	torn := 0
	for line := range strings.Lines(text) {
		var entry struct{ ID string }
		err := json.Unmarshal([]byte(line), &entry)
		if err != nil {
			trimmed := strings.TrimSpace(line)
			if trimmed != "" && trimmed+"\n" != tornMark {
				torn++
			}
			continue
		}
		writer, _, hasWriter := strings.Cut(entry.ID, "-")
		if hasWriter && (writer[0] == 'w' || writer == "other") {
			found[writer] = append(found[writer], entry.ID)
		}
	}
	want := map[string][]string{}
	for _, id := range acked {
		writer, _, _ := strings.Cut(id, "-")
		want[writer] = append(want[writer], id)
	}
	for writer := range want {
		require.Equal(m.t, want[writer], found[writer], "%s, the entries of %s", name, writer)
		delete(found, writer)
	}
	require.Empty(m.t, found, "%s: entries that were refused", name)
	require.LessOrEqual(m.t, torn, m.files.torn[name], "%s has torn lines: %.3000q", path.Base(name), text)
}

// errUnruly is the error of calls that an unrulyStorage makes fail.
var errUnruly = errors.New("injected")

// unrulyStorage is a storage whose calls fail, are cut short, are held up, and overtake each other, by a seed.
type unrulyStorage struct {
	*storagetest.Hooked
	calm atomic.Bool // no faults any more

	mu     sync.Mutex // guards those below
	rnd    *rand.Rand
	faults map[string]int // that were injected, by call
	torn   map[string]int // appends that left a part, by file
	open   atomic.Int64   // objects
}

// odds are the numbers of calls out of which one fails before it has an effect, and late those out of which one fails after it.
var (
	odds = map[string]int{"List": 30, "Stat": 60, "Append": 20, "Overwrite": 3, "Replace": 6, "Sync": 5, "Lock": 40, "Open": 40, "Object.Stat": 60}
	late = map[string]int{"ReadAt": 200, "unlock": 20, "Replace": 6}
)

// newUnruly returns an unruly storage over files.
func newUnruly(files storage.Storage, seed uint64) *unrulyStorage {
	u := &unrulyStorage{
		rnd:    rand.New(rand.NewPCG(seed, 0)),
		faults: map[string]int{},
		torn:   map[string]int{},
	}
	u.Hooked = &storagetest.Hooked{
		Storage: files,
		Before:  func(c storagetest.Call) error { return u.unruly(c.Op, odds[c.Op]) },
		After:   u.after,
	}
	return u
}

// after counts the open objects, and may make a call fail that had its effect.
func (u *unrulyStorage) after(c storagetest.Call, err error) error {
	switch {
	case c.Op == "Open" && err == nil:
		u.open.Add(1)
	case c.Op == "Close":
		u.open.Add(-1)
	}
	mayFail := err == nil || c.Op == "unlock"
	if mayFail {
		err = errors.Join(err, u.unruly(c.Op, late[c.Op]))
	}
	return err
}

// unruly lets others overtake the call, and returns an error for one of so many, never for 0.
func (u *unrulyStorage) unruly(call string, oneOf int) error {
	if u.calm.Load() || oneOf == 0 {
		return nil
	}
	u.mu.Lock()
	turns := u.rnd.IntN(20)
	fails := u.rnd.IntN(oneOf) == 0
	if fails {
		u.faults[call]++
	}
	u.mu.Unlock()
	for range turns {
		runtime.Gosched()
	}
	if !fails {
		return nil
	}
	return errors.Join(errUnruly, unix.EIO)
}

// Append may also leave a part of the first entry behind, as if that could not be undone.
func (u *unrulyStorage) Append(name string, data []byte) (storage.Stat, error) {
	fault := u.unruly("Append, a part", 20)
	if fault == nil {
		return u.Hooked.Append(name, data)
	}
	entry := bytes.Index(data, []byte("}\n")) + 1
	u.mu.Lock()
	part := u.rnd.IntN(entry)
	u.torn[name]++
	u.mu.Unlock()
	_, err := u.Storage.Append(name, data[:part])
	return storage.Stat{}, errors.Join(fault, err)
}

// Replace may also fail in the middle of the content, or say after it that the name may not be durable.
func (u *unrulyStorage) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	if write := r.Write; write != nil {
		r.Write = func(out io.Writer) error { return write(&unrulyWriter{u, out}) }
	}
	return u.Hooked.Replace(name, r)
}

// unrulyWriter writes the content of a replacement.
type unrulyWriter struct {
	u   *unrulyStorage
	out io.Writer
}

// Write implements io.Writer. A write that fails has written a half.
func (w *unrulyWriter) Write(p []byte) (int, error) {
	fault := w.u.unruly("Replace, a part", 30)
	if fault == nil {
		return w.out.Write(p)
	}
	half := p[:len(p)/2]
	n, _ := w.out.Write(half)
	return n, fault
}
