package storage_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestOverLater: files that come later are shown by the next look, which is not at each call.
func TestOverLater(t *testing.T) {
	front := t.TempDir()
	back := t.TempDir()
	sessiontest.WriteFile(t, front+"/p/a.jsonl", "a")
	sessiontest.WriteFile(t, back+"/p/a.jsonl", "old")
	sessiontest.WriteFile(t, back+"/p/b.jsonl", "b")
	looks := 0
	isThere := false
	now := time.Now()
	find := func() (storage.Files, bool) {
		looks++
		return sessiontest.OpenDir(t, back), isThere
	}
	clock := func() time.Time { return now }
	files := storage.OverLaterAt(sessiontest.OpenDir(t, front), find, clock)
	names := func() (names []string) {
		items, err := storage.List(files, "p")
		require.NoError(t, err)
		for _, item := range items {
			names = append(names, item.Name)
		}
		return names
	}
	require.Equal(t, []string{"a.jsonl"}, names())
	before := storagetest.Stat(t, files, "p").Token
	isThere = true
	require.Equal(t, []string{"a.jsonl"}, names())
	_, err := files.Stat("p/b.jsonl")
	require.Error(t, err)
	require.Equal(t, 1, looks)
	now = now.Add(5 * time.Second)
	require.Equal(t, []string{"a.jsonl", "b.jsonl"}, names())
	require.NotEqual(t, before, storagetest.Stat(t, files, "p").Token, "so that lists look once more")
	require.Equal(t, "b", storagetest.Read(t, files, "p/b.jsonl"))
	require.Equal(t, "a", storagetest.Read(t, files, "p/a.jsonl"))
	now = now.Add(time.Hour)
	require.Equal(t, []string{"a.jsonl", "b.jsonl"}, names())
	require.Equal(t, 2, looks)
}

// openFiles counts the open files of a store. It cannot open the file refused.
type openFiles struct {
	storage.Files
	refused string
	open    int
}

// Open implements storage.Files.
func (f *openFiles) Open(name string) (storage.Object, error) {
	if name == f.refused {
		return nil, fs.ErrPermission
	}
	obj, err := f.Files.Open(name)
	f.open++
	return &openObject{Object: obj, files: f}, err
}

// openObject is an open file.
type openObject struct {
	storage.Object
	files *openFiles
}

func (o *openObject) Close() error {
	o.files.open--
	return o.Object.Close()
}

// TestOverOpens: a look at versions leaves no file open, also where one of them cannot be read.
func TestOverOpens(t *testing.T) {
	back := t.TempDir()
	sessiontest.WriteFile(t, back+"/a.jsonl", "old")
	sessiontest.WriteFile(t, back+"/a.1.jsonl", "older and longer")
	for _, refused := range []string{"", "a.jsonl", "a.1.jsonl"} {
		kept := &openFiles{Files: sessiontest.OpenDir(t, back), refused: refused}
		_, err := storage.Over(sessiontest.OpenDir(t, t.TempDir()), kept).Stat("a.jsonl")
		require.NoError(t, err)
		require.Zero(t, kept.open, refused)
	}
}
