package sessiontest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// Header is the header of a session, with its newline.
const Header = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/w"}` + "\n"

// Entry returns the line of a user's message whose text is its own id. An empty parent means null.
func Entry(id, parent string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-01-05T09:00:01.000Z",`+
		`"message":{"role":"user","content":"%s"}}`+"\n", id, p, id)
}

// MessageLine returns the line of an entry with the id e<n> below e<n-1>. message is the JSON object of its
// message.
func MessageLine(n int, message string) string {
	parent := "null"
	if n > 0 {
		parent = fmt.Sprintf(`"e%d"`, n-1)
	}
	return fmt.Sprintf(`{"type":"message","id":"e%d","parentId":%s,"timestamp":"2026-01-05T09:00:%02d.000Z","message":%s}`+"\n", n, parent, n%60, message)
}

// FileName is the name of the file in the storages of NewFile and Memory.
const FileName = "x.jsonl"

// File is a session file that a test changes from outside.
type File struct {
	Path    string
	Storage *dir.Storage // of its directory

	t testing.TB
}

// NewFile creates a file with that content in a new directory.
func NewFile(t testing.TB, content string) *File {
	root := t.TempDir()
	f := &File{t: t, Path: filepath.Join(root, FileName), Storage: OpenDir(t, root)}
	f.Write(content)
	return f
}

// Write overwrites the file in place.
func (f *File) Write(content string) {
	require.NoError(f.t, os.WriteFile(f.Path, []byte(content), 0o600))
}

// Append adds text to the end of the file.
func (f *File) Append(text string) { AppendTo(f.t, f.Path, text) }

// AppendTo adds text to the end of a file.
func AppendTo(t testing.TB, path, text string) {
	t.Helper()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = out.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// WriteFile writes a file, and makes its directory.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// OpenDir returns the storage of a directory.
func OpenDir(t testing.TB, path string) *dir.Storage {
	files, err := dir.Open(path)
	require.NoError(t, err)
	return files
}

// Memory returns a storage in memory with one file, FileName.
func Memory(t testing.TB, content []byte) *memory.Storage {
	files := memory.New()
	require.NoError(t, files.WriteFile(FileName, content))
	return files
}

// Acquire acquires a session. The snapshot is released at the end of the test.
func Acquire[Snapshot interface{ Release() }](t testing.TB, s interface {
	Acquire(context.Context) (Snapshot, error)
}) (Snapshot, error) {
	snap, err := s.Acquire(context.Background())
	if err == nil {
		t.Cleanup(snap.Release)
	}
	return snap, err
}

// Snapshot returns a snapshot of a session, which is released at the end of the test.
func Snapshot[S interface{ Release() }](t testing.TB, s interface {
	Acquire(context.Context) (S, error)
}) S {
	t.Helper()
	snap, err := Acquire(t, s)
	require.NoError(t, err)
	return snap
}

// At is an entry at second n under a parent.
func At(n int, id, parent, more string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"custom","id":"%s","parentId":%s,"timestamp":"2026-01-05T09:00:%02d.000Z"%s}`+"\n", id, p, n, more)
}

// LabelAt is an entry that labels another.
func LabelAt(n int, id, parent, target, label string) string {
	return strings.Replace(At(n, id, parent, `,"targetId":"`+target+`","label":"`+label+`"`), `"custom"`, `"label"`, 1)
}

// MoveAt is an entry that moves the leaf.
func MoveAt(n int, id, parent, target string) string {
	if target != "null" {
		target = `"` + target + `"`
	}
	return At(n, id, parent, `,"customType":"sessionfs/leaf","data":{"targetId":`+target+`}`)
}
