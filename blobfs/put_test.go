package blobfs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	sessiondir "sessionfs/sessioncore/storage/dir"
)

// openStore returns a store in a new directory, and the directory.
func openStore(t *testing.T) (*Store, string) {
	dir := t.TempDir()
	storage, err := sessiondir.Open(dir)
	require.NoError(t, err)
	return &Store{storage}, dir
}

// hashOf returns the name of the blob of data.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// TestPut: a blob is stored once, under its hash. To store it again gives it the time of now, and an ending gives it a
// second name.
func TestPut(t *testing.T) {
	store, dir := openStore(t)
	data := []byte("a picture")
	hash, err := store.Put(data, "")
	require.NoError(t, err)
	require.Equal(t, hashOf(data), hash)
	file := filepath.Join(dir, hash)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, data, got)
	st, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode())

	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(file, time.Time{}, hourAgo))
	_, err = store.Put(data, "")
	require.NoError(t, err)
	again, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, os.SameFile(st, again), "a complete blob stays as it is")
	require.WithinDuration(t, time.Now(), again.ModTime(), time.Minute, "so that it is not swept before a line names it")
	onlyFile(t, dir, hash)

	for range 2 {
		_, err = store.Put(data, "png")
		require.NoError(t, err)
	}
	linked, err := os.Stat(file + ".png")
	require.NoError(t, err)
	require.True(t, os.SameFile(st, linked))
}

// onlyFile requires that a directory has one file, with a name.
func onlyFile(t *testing.T, dir, name string) {
	items, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.Equal(t, name, items[0].Name())
}

// TestPutRepairs: a part of a blob, as a crash of the client leaves it, becomes the whole.
func TestPutRepairs(t *testing.T) {
	store, dir := openStore(t)
	data := []byte("a picture")
	for _, broken := range []string{"", "a pic", "A PICTURE"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, hashOf(data)), []byte(broken), 0o600))
		_, err := store.Put(data, "")
		require.NoError(t, err)
		whole, err := store.verify(hashOf(data))
		require.NoError(t, err)
		require.True(t, whole)
	}
	onlyFile(t, dir, hashOf(data))
}

// TestCopy: a blob is copied if it has the hash that is its name, over a part of it too; otherwise nothing changes.
func TestCopy(t *testing.T) {
	store, dir := openStore(t)
	data := strings.NewReader("a picture")
	hash := hashOf([]byte("a picture"))
	require.ErrorContains(t, store.Copy(hash, data, data.Size()-1), "is not what its name says")
	items, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, items)
	require.NoError(t, os.WriteFile(filepath.Join(dir, hash), []byte("a pic"), 0o600))
	for range 2 {
		require.NoError(t, store.Copy(hash, data, data.Size()))
		whole, err := store.verify(hash)
		require.NoError(t, err)
		require.True(t, whole)
	}
	onlyFile(t, dir, hash)
}

// TestPutRefuses: a directory or a link that has the name of a blob stays, and a file elsewhere is not written.
func TestPutRefuses(t *testing.T) {
	store, dir := openStore(t)
	data := []byte("a picture")
	file := filepath.Join(dir, hashOf(data))
	require.NoError(t, os.Mkdir(file, 0o700))
	_, err := store.Put(data, "")
	require.ErrorIs(t, err, storage.ErrNotRegular)
	require.NoError(t, os.Remove(file))
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("x"), 0o600))
	require.NoError(t, os.Symlink(other, file))
	_, err = store.Put(data, "")
	require.ErrorIs(t, err, storage.ErrNotRegular)
	got, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

// TestPutConcurrently: several writers of one blob succeed, and leave one file.
func TestPutConcurrently(t *testing.T) {
	store, dir := openStore(t)
	data := make([]byte, 300<<10)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, err := store.Put(data, "")
			assert.NoError(t, err)
		})
	}
	group.Wait()
	onlyFile(t, dir, hashOf(data))
}
