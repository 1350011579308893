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

func openStore(t *testing.T) (*Store, string) {
	dir := t.TempDir()
	storage, err := sessiondir.Open(dir)
	require.NoError(t, err)
	return &Store{storage}, dir
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestPut(t *testing.T) {
	store, dir := openStore(t)
	data := []byte("a picture")
	hash, err := store.Put(data, "")
	require.NoError(t, err)
	require.Equal(t, hashOf(data), hash)
	got, err := os.ReadFile(filepath.Join(dir, hash))
	require.NoError(t, err)
	require.Equal(t, data, got)
	st, err := os.Stat(filepath.Join(dir, hash))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode())

	require.NoError(t, os.Chtimes(filepath.Join(dir, hash), time.Time{}, time.Now().Add(-time.Hour)))
	_, err = store.Put(data, "")
	require.NoError(t, err)
	again, err := os.Stat(filepath.Join(dir, hash))
	require.NoError(t, err)
	require.True(t, os.SameFile(st, again), "what is there stays as it is")
	require.WithinDuration(t, time.Now(), again.ModTime(), time.Minute, "so that it is not swept before a line names it")
	onlyFile(t, dir, hash)

	for range 2 {
		_, err = store.Put(data, "png")
		require.NoError(t, err)
	}
	linked, err := os.Stat(filepath.Join(dir, hash+".png"))
	require.NoError(t, err)
	require.True(t, os.SameFile(st, linked))
}

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

func TestPutRefuses(t *testing.T) {
	store, dir := openStore(t)
	data := []byte("a picture")
	require.NoError(t, os.Mkdir(filepath.Join(dir, hashOf(data)), 0o700))
	_, err := store.Put(data, "")
	require.ErrorIs(t, err, storage.ErrNotRegular)
	require.NoError(t, os.Remove(filepath.Join(dir, hashOf(data))))
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("x"), 0o600))
	require.NoError(t, os.Symlink(other, filepath.Join(dir, hashOf(data))))
	_, err = store.Put(data, "")
	require.ErrorIs(t, err, storage.ErrNotRegular)
	got, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

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
