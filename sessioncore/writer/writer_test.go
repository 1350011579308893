package writer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/clienttest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const (
	plainHeader = `{"type":"session","version":3,"id":"s1","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/home/dev/pi"}` + "\n"
	plainUser   = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-16T10:21:00.000Z","message":{"role":"user","content":"one"}}` + "\n"
	plainReply  = `{"type":"message","id":"b","parentId":"a","timestamp":"2026-02-16T10:22:00.000Z","message":{"role":"user","content":"two"}}` + "\n"
	plainFile   = plainHeader + plainUser + plainReply
	plainName   = "scope/session.jsonl"
	plainNow    = "2026-03-01T00:00:00.000Z"
	testUsage   = `"usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"cost":{"total":0}}`
	testAnswer  = `{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],` + testUsage + `}}`
)

// A session of the operator dialect (docs/format.md, Operator dialect).
const (
	opHeader = `{"type":"session_header","id":"s1","timestamp":1771237230.5,"cwd":"/home/dev/hives"}` + "\n"
	opUser   = `{"type":"message","id":"a","parent_id":null,"timestamp":1771237260.125,"message":{"role":"user","content":"one"}}` + "\n"
	opReply  = `{"type":"message","id":"b","parent_id":"a","timestamp":1771237320.25,"message":{"role":"user","content":"two"}}` + "\n"
	opFile   = opHeader + opUser + opReply
)

// memBlobs is a blob store in memory.
type memBlobs struct {
	blobs   map[string]string
	endings []string
	err     error
}

// Put implements BlobPutter.
func (m *memBlobs) Put(data []byte, ending string) (string, error) {
	if m.err != nil {
		return "", m.err
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	m.blobs[hash] = string(data)
	if ending != "" {
		m.endings = append(m.endings, ending)
	}
	return hash, nil
}

// writing is a writer over a storage, with a clock and ids that tests can foretell.
type writing struct {
	*Writer
	t       testing.TB
	storage storage.Files // as readers see it
	session *sessioncore.Session
	blobs   *memBlobs
	count   atomic.Int32 // ids made
}

// startWriting returns a writer over files, in which it puts a session with a content, unless that is "".
func startWriting(t testing.TB, files storage.Storage, content string, opts Options) *writing {
	t.Helper()
	w := &writing{t: t, storage: files, blobs: &memBlobs{blobs: map[string]string{}}}
	now, err := time.Parse(time.RFC3339, plainNow)
	require.NoError(t, err)
	opts.Now = func() time.Time { return now }
	opts.NewID = func() string { return fmt.Sprintf("%08x", w.count.Add(1)) }
	if opts.Blobs == nil {
		opts.Blobs = w.blobs
	}
	if content != "" {
		putFile(t, files, plainName, content)
	}
	opts.Journal = files
	store := sessioncore.NewStore(w.storage)
	t.Cleanup(store.Close)
	store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByOMP })
	w.Writer = New(store, opts)
	w.session = store.Session(plainName)
	return w
}

// putFile puts a file into a storage as a program beside us would.
func putFile(t testing.TB, files storage.Files, name, content string) {
	t.Helper()
	switch s := files.(type) {
	case *memory.Storage:
		require.NoError(t, s.WriteFile(name, []byte(content)))
	case *dir.Storage:
		require.NoError(t, s.MkdirAll(storage.Dir(name)))
		require.NoError(t, os.WriteFile(filepath.Join(s.Path(), name), []byte(content), 0o600))
	case *storagetest.Hooked:
		putFile(t, s.Storage, name, content)
	default:
		t.Fatalf("%T", files)
	}
}

// startMemory is startWriting with files in memory.
func startMemory(t testing.TB, content string, opts Options) *writing {
	return startWriting(t, memory.New(), content, opts)
}

// fileContent returns the content of a file in a storage.
func fileContent(t testing.TB, files storage.Files, name string) string {
	t.Helper()
	obj, err := files.Open(name)
	require.NoError(t, err)
	defer obj.Close()
	st, err := obj.Stat()
	require.NoError(t, err)
	b := make([]byte, st.Size)
	require.NoError(t, storage.ReadFull(obj, b, 0))
	return string(b)
}

func (w *writing) content() string { return fileContent(w.t, w.storage, w.session.Name()) }

// added returns the lines that were added to the session since its content was before, nil if there are none.
func (w *writing) added(before string) []string {
	w.t.Helper()
	added, isGrown := strings.CutPrefix(w.content(), before)
	require.True(w.t, isGrown, "the old content changed:\n%s", added)
	if added == "" {
		return nil
	}
	require.True(w.t, strings.HasSuffix(added, "\n"))
	return strings.Split(strings.TrimSuffix(added, "\n"), "\n")
}

// append appends lines to the session, and returns their ids.
func (w *writing) append(lines ...string) ([]string, error) {
	raw := make([][]byte, len(lines))
	for i, line := range lines {
		raw[i] = []byte(line)
	}
	return w.Append(context.Background(), w.session, raw...)
}

// adds is append of lines that must be accepted.
func (w *writing) adds(lines ...string) []string {
	w.t.Helper()
	ids, err := w.append(lines...)
	require.NoError(w.t, err)
	return ids
}

// snapshot returns a snapshot of the session, which the test releases at its end.
func (w *writing) snapshot() *sessioncore.Snapshot {
	w.t.Helper()
	return sessiontest.Snapshot(w.t, w.session)
}

// leaf returns the id of the leaf, "" for none.
func (w *writing) leaf() string {
	w.t.Helper()
	snap := w.snapshot()
	e := sessiontest.Leaf(w.t, snap)
	if e == sessioncore.NoEntry {
		return ""
	}
	id, _ := snap.ID(e)
	return id
}

// TestChild is not a test: it is the main function of the child process.
func TestChild(*testing.T) {
	childtest.Run(map[string]func(args []string) error{"client": clienttest.Child, "stray": childStrayWriter, "lease": childLease, "locked": childLockedWriter})
}
