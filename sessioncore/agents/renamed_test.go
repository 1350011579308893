package agents

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestRenamed: files have other names, and directories are made up.
func TestRenamed(t *testing.T) {
	raw := memory.New()
	const text = "{\n  \"a\": [\n    1\n  ]\n}\n"
	for name, content := range map[string]string{"in/x/events.jsonl": `{"x":1}` + "\n", "in/y.json": text} {
		require.NoError(t, raw.WriteFile(name, []byte(content)))
	}
	files := map[string]string{ // by shown names
		"in":         "in",
		"in/x":       "in/x/events.jsonl",
		"in/x.jsonl": "in/x/events.jsonl",
		"in/y.jsonl": "in/y.json",
		"in/d.jsonl": "in/x", // a directory shown as a file
	}
	r := &Renamed{
		Raw: raw,
		Names: func(dir string) (items []storage.Item, err error) {
			if dir != "in" {
				return nil, Missing(dir)
			}
			for _, name := range []string{"x.jsonl", "y.jsonl", "gone.jsonl"} {
				items = append(items, storage.Item{Name: name, Kind: storage.KindFile})
			}
			return append(items, storage.Item{Name: "x", Kind: storage.KindDir}), nil
		},
		Real: func(name string) (string, storage.Kind, error) {
			at, isKnown := files[name]
			if !isKnown {
				return "", 0, Missing(name)
			}
			kind := storage.KindDir
			if strings.HasSuffix(name, ".jsonl") {
				kind = storage.KindFile
			}
			return at, kind, nil
		},
	}
	items, err := storage.ListStat(r, "in", func(storage.Item) bool { return true })
	require.NoError(t, err)
	var listed []string
	for _, item := range items {
		isFile := item.Kind == storage.KindFile
		listed = append(listed, fmt.Sprint(item.Name, " ", isFile, " ", item.Size))
	}
	require.Equal(t, []string{"x.jsonl true 8", fmt.Sprint("y.jsonl true ", len(text)), "x false 0"}, listed)
	for name, want := range map[string]error{"in": storage.ErrNotRegular, "in/x": storage.ErrNotRegular, "in/none.jsonl": fs.ErrNotExist} {
		_, err := r.Open(name)
		require.ErrorIs(t, err, want, name)
	}
	_, err = r.Stat("in/d.jsonl")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, r.List("out", nil, func(storage.Item) bool { return true }), fs.ErrNotExist)
	obj, err := r.Open("in/y.jsonl")
	require.NoError(t, err)
	defer obj.Close()
	got := make([]byte, len(text))
	require.NoError(t, storage.ReadFull(obj, got, 0))
	require.Equal(t, text, string(got))
	r.ReadAhead([]string{"in/x.jsonl", "in/none.jsonl"})
}
