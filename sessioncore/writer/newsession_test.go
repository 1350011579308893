package writer

import (
	"io"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestParseNewSession: a line is a working directory as it is, or an object.
func TestParseNewSession(t *testing.T) {
	for line, want := range map[string]NewSession{
		"/with blank ": {CWD: "/with blank "},
		`{"cwd":"/w","title":"T","parentSession":"p","agent":"pi","create":true}`: {"/w", "T", "p", "pi", true},
		` {"cwd":"/w","title":null,"create":false} `:                              {CWD: "/w"},
	} {
		got, err := ParseNewSession([]byte(line))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// TestSessionNames: a file name has the time in UTC; an id is a UUID of version 7 with the time.
func TestSessionNames(t *testing.T) {
	now := time.Date(2026, 2, 16, 11, 20, 30, 45e6, time.FixedZone("", 3600))
	require.Equal(t, "2026-02-16T10-20-30-045Z_x.jsonl", sessionFileName(sessioncore.OMP, now, "x"))
	id := sessionIDOf(now, [16]byte{6: 0xFF, 8: 0xFF, 15: 0xFF})
	require.Regexp(t, `^019c65f7-45dd-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	require.NotEqual(t, id, sessionIDOf(now, [16]byte{}))
}

// TestNewSession: in a directory a new session is its user's alone, and nothing is left beside it.
func TestNewSession(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	w := startWriting(t, disk, "", Options{})
	name, err := w.NewSession(t.Context(), NewSession{Create: true, CWD: "/w"})
	require.NoError(t, err)
	st := storagetest.Stat(t, disk, name)
	require.Equal(t, []any{uint32(0o600), uint32(os.Geteuid())}, []any{st.Mode, st.UID})
	require.Empty(t, storagetest.Leftovers(t, disk.Path()))
}

// TestNewSessionRefused: a line that is refused makes no file, whatever fails, and the next one is taken.
func TestNewSessionRefused(t *testing.T) {
	op := "Replace"
	disk := &storagetest.Hooked{Storage: memory.New(), Before: failing(&op, fs.ErrPermission)}
	w := startWriting(t, disk, "", Options{})
	_, err := w.NewSession(t.Context(), NewSession{Create: true, CWD: "/w"})
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = disk.Stat("--w--")
	require.True(t, storage.IsMissing(err))
	op = ""
	_, err = w.NewSession(t.Context(), NewSession{Create: true, CWD: "/w"})
	require.NoError(t, err)
	_, err = New(w.store, Options{}).NewSession(t.Context(), NewSession{Create: true, CWD: "/w"})
	require.ErrorIs(t, err, sessioncore.ErrReadOnly)
}

// TestNewSessionLocked: a new file is made under the lock of its name, in its directory.
func TestNewSessionLocked(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	w := startWriting(t, disk, "", Options{})
	var held []storage.Item
	require.NoError(t, w.createNamed(t.Context(), "new/s.jsonl", func(_ io.Writer) (err error) {
		held, err = storage.List(disk, "new")
		return err
	}))
	require.Equal(t, ".s.jsonl.lock", held[1].Name, "beside the temporary file")
	require.ErrorIs(t, w.createNamed(t.Context(), "new/s.jsonl", storagetest.Content("x")), fs.ErrExist)
	require.Empty(t, fileContent(t, disk, "new/s.jsonl"))
}
