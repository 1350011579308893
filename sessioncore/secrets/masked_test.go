package secrets

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// token is put together at run time, so that no scanner finds it in this file; word is a secret where something says so.
var token, word = planted[0].secret, mixed(31)

// store returns a redacting storage over a directory with one file.
func store(t *testing.T, text string) (*Masked, *sessiontest.File) {
	f := sessiontest.NewFile(t, text)
	return Mask(f.Storage, Known()), f
}

// read returns the content of a masked file.
func read(t *testing.T, files *Masked, name string) string {
	t.Helper()
	text, err := storage.ReadFile(files, name, 1<<20)
	require.NoError(t, err)
	return string(text)
}

// TestMasks reads a file in every range: the secret is asterisks in all of them, and all else is as it was.
func TestMasks(t *testing.T) {
	text := `{"a":"` + token + `"}` + "\n" + `{"b":"x"}` + "\n"
	want := strings.ReplaceAll(text, token, strings.Repeat("*", len(token)))
	files, _ := store(t, text)
	require.Equal(t, want, read(t, files, sessiontest.FileName))
	obj, err := files.Open(sessiontest.FileName)
	require.NoError(t, err)
	defer obj.Close()
	const beyondEnd = 3
	for from := range text {
		for to := from; to <= len(text)+beyondEnd; to++ {
			part := make([]byte, to-from)
			n, err := obj.ReadAt(part, int64(from))
			end := min(to, len(text))
			require.Equal(t, want[from:end], string(part[:n]))
			if to > len(text) {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.NoError(t, err)
			}
		}
	}
	_, isFile := obj.(interface{ Fd() uintptr })
	require.False(t, isFile, "a descriptor would show what is masked")
}

// TestChanges changes a file in each way that a file changes, and looks for secrets in it and in what was open before.
func TestChanges(t *testing.T) {
	first := `{"a":"say ` + word + `"}` + "\n"
	telling := `{"password":"` + word + `"}` + "\n"
	plain := `{"c":"` + strings.Repeat("-", len(token)) + `"}` + "\n"
	masked := strings.Replace(plain, strings.Repeat("-", len(token)), token, 1)
	for name, c := range map[string]struct {
		before string
		change func(f *sessiontest.File)
		stale  bool // what was open has shown too much
	}{
		"a secret is appended":                              {plain, func(f *sessiontest.File) { f.Append(token) }, false},
		"a line tells that an earlier word is a secret":     {first, func(f *sessiontest.File) { f.Append(telling) }, true},
		"a secret is written into the middle, and it grows": {plain + plain, func(f *sessiontest.File) { f.Write(plain + masked + plain) }, true},
		"it is replaced": {plain, func(f *sessiontest.File) {
			sessiontest.WriteFile(t, f.Path+"~", token)
			require.NoError(t, os.Rename(f.Path+"~", f.Path))
		}, false},
	} {
		files, f := store(t, c.before)
		require.Equal(t, c.before, read(t, files, sessiontest.FileName), name)
		open, err := files.Open(sessiontest.FileName)
		require.NoError(t, err)
		c.change(f)
		after := read(t, files, sessiontest.FileName)
		require.Contains(t, after, "****", name)
		for _, secret := range []string{token, word} {
			require.NotContains(t, after, secret, name)
		}
		raw, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		require.Len(t, after, len(raw), name)
		if c.stale {
			_, err := open.ReadAt(make([]byte, 10), 0)
			require.ErrorIs(t, err, storage.ErrStale, name)
		} else {
			shown, err := io.ReadAll(io.NewSectionReader(open, 0, int64(len(after))))
			require.NoError(t, err)
			require.NotContains(t, string(shown), token, name)
		}
		require.NoError(t, open.Close())
	}
}

// TestMaskedNames looks for what is not a session file, and for what has a secret in its name.
func TestMaskedNames(t *testing.T) {
	files, f := store(t, "{}\n")
	d := filepath.Dir(f.Path)
	for _, name := range []string{token + "/in/x.jsonl", token + ".jsonl", "2026-06-01_" + "AKIA" + "ZDOCIS2JHTLGMXGE.jsonl", "1.bash.log"} {
		sessiontest.WriteFile(t, filepath.Join(d, name), token)
	}
	require.NoError(t, os.Symlink(token, filepath.Join(d, "link")))
	items, err := storage.List(files, "")
	require.NoError(t, err)
	want := []storage.Item{
		{Name: "1.bash.log", Kind: storage.KindFile},
		{Name: sessiontest.FileName, Kind: storage.KindFile},
	}
	require.Equal(t, want, items)
	for _, name := range []string{token, token + "/in", token + "/in/x.jsonl", token + ".jsonl", "link"} {
		_, err := files.Stat(name)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		_, err = files.Open(name)
		require.Error(t, err)
		require.NotContains(t, err.Error(), token)
	}
	_, err = storage.List(files, token)
	require.ErrorIs(t, err, fs.ErrNotExist)
	st, err := files.Stat("1.bash.log")
	require.NoError(t, err)
	require.Zero(t, st.Mode)
	_, err = files.Open("1.bash.log")
	require.ErrorIs(t, err, fs.ErrPermission)
}

// TestMaskedTooMany: a file with too many secrets is refused, and one mask more than are kept makes room.
func TestMaskedTooMany(t *testing.T) {
	require.ErrorIs(t, searchError(errTooMany), fs.ErrPermission)
	files, f := store(t, "{}\n")
	files.maxPlaces = 10
	for i := range 12 {
		name := string(rune('a'+i)) + ".jsonl"
		sessiontest.WriteFile(t, filepath.Join(filepath.Dir(f.Path), name), strings.Repeat(token+"\n", 4))
		require.NotContains(t, read(t, files, name), token)
		require.LessOrEqual(t, files.places, 10)
		require.LessOrEqual(t, len(files.masks), 3)
	}
}

// TestRacyTimes: a secret that is written into a file within a tick of the clock of file times is masked.
func TestRacyTimes(t *testing.T) {
	mem := sessiontest.Memory(t, []byte(strings.Repeat("-", len(token))))
	files := Mask(&storagetest.Stopped{Storage: mem, At: storagetest.Ticking(true)}, Known())
	require.Contains(t, read(t, files, sessiontest.FileName), "---")
	require.NoError(t, mem.WriteFile(sessiontest.FileName, []byte(token)))
	require.NotContains(t, read(t, files, sessiontest.FileName), token)
}
