package writer

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

func TestParseNewSession(t *testing.T) {
	tests := []struct {
		line string
		want NewSession
	}{
		{"/home/dev/pi", NewSession{CWD: "/home/dev/pi"}},
		{"/with blank ", NewSession{CWD: "/with blank "}},
		{`{"cwd":"/w","title":"T","parentSession":"p","agent":"pi","create":true}`, NewSession{"/w", "T", "p", "pi", true}},
		{` {"cwd":"/w","title":null,"create":false} `, NewSession{CWD: "/w"}},
	}
	for _, test := range tests {
		got, err := ParseNewSession([]byte(test.line))
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	for _, line := range []string{"", "relative", "{", `{"title":"x"}`, `{"cwd":7}`, `{"cwd":"x"}`, `{"cwd":"/w","title":1}`,
		`{"cwd":"/w","create":"yes"}`, "/a\x00b", "/a\xff"} {
		_, err := ParseNewSession([]byte(line))
		require.ErrorIs(t, err, sessioncore.ErrInvalid, "%q", line)
	}
}

func TestSessionNames(t *testing.T) {
	now := time.Date(2026, 2, 16, 11, 20, 30, 45e6, time.FixedZone("", 3600))
	require.Equal(t, "2026-02-16T10-20-30-045Z_x.jsonl", sessionFileName(sessioncore.OMP, now, "x"))
	id := sessionIDOf(now, [16]byte{6: 0xFF, 8: 0xFF, 15: 0xFF})
	require.Regexp(t, `^019c65f7-45dd-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	require.NotEqual(t, id, sessionIDOf(now, [16]byte{}))
}

func TestNewSession(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	w := startWriting(t, disk, "", Options{})
	name := w.begins(NewSession{CWD: "/home/dev/pi/", Title: " my\ttitle ", Parent: "p"})
	require.Regexp(t, `^--home-dev-pi--/2026-03-01T00-00-00-000Z_[0-9a-f-]{36}\.jsonl$`, name)
	id := strings.TrimSuffix(name[strings.LastIndexByte(name, '_')+1:], ".jsonl")
	header := `{"type":"session","version":3,"id":"` + id + `","timestamp":"` + plainNow +
		`","cwd":"/home/dev/pi","parentSession":"p","title":"my title","titleSource":"user"}` + "\n"
	require.Equal(t, header, fileContent(t, disk, name), "one line, the header")
	st := storagetest.Stat(t, disk, name)
	require.Equal(t, []any{uint32(0o600), uint32(os.Geteuid())}, []any{st.Mode, st.UID})
	require.Empty(t, storagetest.Leftovers(t, disk.Path()))
}

// TestNewSessionSlot: a session of omp has a title slot where the newest one beside it has, and none where an older client may
// work, which overwrites a file that begins with one.
func TestNewSessionSlot(t *testing.T) {
	slot := string(titleSlot("t", titleByUser, plainNow))
	for name, test := range map[string]struct {
		beside  []string
		program sessioncore.Program
		want    bool
	}{
		"none":             {nil, sessioncore.ByOMP, false},
		"an older one":     {[]string{plainHeader}, sessioncore.ByOMP, false},
		"a newer one":      {[]string{slot + plainHeader}, sessioncore.ByOMP, true},
		"newer, now older": {[]string{slot + plainHeader, plainHeader}, sessioncore.ByOMP, false},
		"older, now newer": {[]string{plainHeader, slot + plainHeader}, sessioncore.ByOMP, true},
		"not a session":    {[]string{slot[:100]}, sessioncore.ByOMP, false},
		"of pi":            {[]string{slot + plainHeader}, sessioncore.ByPi, false},
	} {
		t.Run(name, func(t *testing.T) {
			files := memory.New()
			for i, text := range test.beside {
				putFile(t, files, fmt.Sprintf("--w--/2026-01-0%dT00-00-00-000Z_%d.jsonl", i+1, i), text)
			}
			w := startWriting(t, files, "", Options{})
			w.store.SetProgram(func(string) sessioncore.Program { return test.program })
			w.begins(NewSession{CWD: "/w", Title: "named"})
			text := w.content()
			require.Equal(t, test.want, sessioncore.IsTitleSlot(rawjson.Value(strings.SplitN(text, "\n", 2)[0])), text)
			if test.want {
				require.Equal(t, names.SlotSize, strings.Index(text, "\n")+1)
				require.Equal(t, 2, strings.Count(text, "\n"), "the slot and the header")
			}
			title, err := w.snapshot().Title()
			require.NoError(t, err)
			require.Equal(t, "named", title)
		})
	}
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
	w.begins(NewSession{CWD: "/w"})
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
