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
)

// The secrets are put together at run time, so that no scanner finds them in this file.
var (
	token = "ghp" + "_" + "R7tq2LmX9vKc4WzN8bHdY3fJp6sGa1uEoQ5i"
	word  = strings.Join([]string{"kV3x", "Qm9T", "r2Lz", "8Wd5", "Ns7B"}, "")
)

// store returns a redacting storage over a directory with the file s.jsonl.
func store(t *testing.T, text string) (files *Masked, path string) {
	d := t.TempDir()
	path = filepath.Join(d, "s.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Mask(sessiontest.OpenDir(t, d), Known()), path
}

func read(t *testing.T, files *Masked, name string) string {
	t.Helper()
	obj, err := files.Open(name)
	require.NoError(t, err)
	defer obj.Close()
	return content(t, obj)
}

func content(t *testing.T, obj storage.Object) string {
	t.Helper()
	st, err := obj.Stat()
	require.NoError(t, err)
	b, err := io.ReadAll(io.NewSectionReader(obj, 0, st.Size))
	require.NoError(t, err)
	return string(b)
}

// TestMasks reads a file in every range: the secret is asterisks in all of them, and all else is as it was.
func TestMasks(t *testing.T) {
	text := `{"a":"` + token + `"}` + "\n" + `{"b":"x"}` + "\n"
	want := strings.ReplaceAll(text, token, strings.Repeat("*", len(token)))
	files, _ := store(t, text)
	require.Equal(t, want, read(t, files, "s.jsonl"))
	obj, err := files.Open("s.jsonl")
	require.NoError(t, err)
	defer obj.Close()
	for from := range text {
		for to := from; to <= len(text)+3; to++ {
			p := make([]byte, to-from)
			n, err := obj.ReadAt(p, int64(from))
			require.Equal(t, want[from:min(to, len(text))], string(p[:n]))
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
	for name, change := range map[string]struct {
		before string
		change func(t *testing.T, path string, f *os.File)
		stale  bool // what was open has shown too much
	}{
		"a secret is appended": {plain, func(t *testing.T, _ string, f *os.File) {
			_, err := f.WriteString(token)
			require.NoError(t, err)
		}, false},
		"a line tells that an earlier word is a secret": {first, func(t *testing.T, _ string, f *os.File) {
			_, err := f.WriteString(telling)
			require.NoError(t, err)
		}, true},
		"a secret is written into the middle, and something is appended": {plain + plain + plain, func(t *testing.T, _ string, f *os.File) {
			g, err := os.OpenFile(f.Name(), os.O_WRONLY, 0)
			require.NoError(t, err)
			defer g.Close()
			_, err = g.WriteAt([]byte(token), int64(len(plain)+6))
			require.NoError(t, err)
			_, err = f.WriteString(plain)
			require.NoError(t, err)
		}, true},
		"it is cut and grows again": {plain + plain, func(t *testing.T, path string, f *os.File) {
			require.NoError(t, os.Truncate(path, int64(len(plain))))
			_, err := f.WriteString(`{"c":"` + token + `"}` + "\n" + plain)
			require.NoError(t, err)
		}, true},
		"it is replaced": {plain, func(t *testing.T, path string, _ *os.File) {
			require.NoError(t, os.WriteFile(path+"~", []byte(token), 0o600))
			require.NoError(t, os.Rename(path+"~", path))
		}, false},
	} {
		files, path := store(t, change.before)
		require.Equal(t, change.before, read(t, files, "s.jsonl"), name)
		open, err := files.Open("s.jsonl")
		require.NoError(t, err)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		change.change(t, path, f)
		require.NoError(t, f.Close())
		after := read(t, files, "s.jsonl")
		require.Contains(t, after, "****", name)
		for _, secret := range []string{token, word} {
			require.NotContains(t, after, secret, name)
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Len(t, after, len(raw), name)
		if change.stale {
			_, err := open.ReadAt(make([]byte, 10), 0)
			require.ErrorIs(t, err, storage.ErrStale, name)
		} else {
			require.NotContains(t, content(t, open), token, name)
		}
		require.NoError(t, open.Close())
	}
}

// TestMaskedNames looks for what is not a session file, and for what has a secret in its name.
func TestMaskedNames(t *testing.T) {
	files, path := store(t, "{}\n")
	d := filepath.Dir(path)
	require.NoError(t, os.MkdirAll(filepath.Join(d, token, "in"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(d, token, "in", "s.jsonl"), []byte("{}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(d, token+".jsonl"), []byte("{}\n"), 0o600))
	key := "AKIA" + "ZDOCIS2JHTLGMXGE"
	require.NoError(t, os.WriteFile(filepath.Join(d, "2026-06-01_"+key+".jsonl"), []byte("{}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(d, "1.bash.log"), []byte(token), 0o644))
	require.NoError(t, os.Symlink(token, filepath.Join(d, "link")))
	items, err := storage.List(files, "")
	require.NoError(t, err)
	require.Equal(t, []storage.Item{{Name: "1.bash.log", Kind: storage.KindFile}, {Name: "s.jsonl", Kind: storage.KindFile}}, items)
	for _, name := range []string{token, token + "/in", token + "/in/s.jsonl", token + ".jsonl", "link"} {
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

// TestTooMany: a file with too many secrets is refused, and one mask more than are kept makes room.
func TestMaskedTooMany(t *testing.T) {
	require.ErrorIs(t, searchError(errTooMany), fs.ErrPermission)
	files, path := store(t, "{}\n")
	files.maxPlaces = 10
	for i := range 12 {
		name := string(rune('a'+i)) + ".jsonl"
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(strings.Repeat(token+"\n", 4)), 0o600))
		require.NotContains(t, read(t, files, name), token)
		require.LessOrEqual(t, files.places, 10)
		require.LessOrEqual(t, len(files.masks), 3)
	}
}
