package postgres

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

func openBlobs(t *testing.T, s opened) *Blobs {
	t.Helper()
	b, err := s.OpenBlobs(t.Context(), true)
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func putBlob(b *Blobs, name string, expect storage.Token, data []byte) error {
	_, err := b.Replace(name, storage.Replacement{Expect: expect, Write: func(w io.Writer) error { _, err := w.Write(data); return err }})
	return err
}

// tableOfBlobs returns the name of the table beside another one.
func tableOfBlobs(table *postgrestest.Table) string {
	return strings.Split(table.Name, ".")[0] + "." + BlobsTable
}

// TestBlobs: what one mount stores another one reads.
func TestBlobs(t *testing.T) {
	table, s := openTable(t, Options{})
	_, err := s.OpenBlobs(t.Context(), false)
	require.ErrorContains(t, err, "there is no table")
	mine := openBlobs(t, s)
	others := openBlobs(t, open(t, table.Source("&prefix="+prefix), Options{}))
	data := bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 700_000)
	require.Greater(t, len(data), maxInMemory)
	before, err := others.Stat("")
	require.NoError(t, err)
	require.NoError(t, putBlob(mine, hashOf(data), storage.Token{}, data))
	require.ErrorIs(t, putBlob(others, hashOf(data), storage.Token{}, data), fs.ErrExist)

	after, err := others.Stat("")
	require.NoError(t, err)
	require.NotEqual(t, before.Token, after.Token, "the state of all of them tells that there is a new one")
	st, err := others.Stat(hashOf(data))
	require.NoError(t, err)
	require.Equal(t, int64(len(data)), st.Size)
	o, err := others.Open(hashOf(data))
	require.NoError(t, err)
	got, err := io.ReadAll(io.NewSectionReader(o, 0, st.Size+1))
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	part := make([]byte, 100)
	n, err := o.ReadAt(part, pieceSize-50)
	require.NoError(t, err)
	require.Equal(t, data[pieceSize-50:pieceSize+50], part[:n])
	n, err = o.ReadAt(part, st.Size-7)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 7, n)

	table.Do(t, `DELETE FROM `+tableOfBlobs(table))
	_, err = others.Open(hashOf(data))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = o.ReadAt(part, 5*pieceSize)
	require.NoError(t, err, "it was read while it was there")
}

// TestBlobsByKey: who asks for a blob by its name, again and again, has nobody look through the table.
func TestBlobsByKey(t *testing.T) {
	table, s := openTable(t, Options{Fresh: time.Hour})
	mine, others := openBlobs(t, s), openBlobs(t, open(t, table.Source("&prefix="+prefix), Options{}))
	looks, data := s.sent.count(mine.sql.changed), []byte("an image")
	require.Positive(t, looks)
	mine.lookAgain() // the last look is too old
	require.NoError(t, putBlob(others, hashOf(data), storage.Token{}, data))
	for range 3 {
		require.Equal(t, string(data), storagetest.Read(t, mine, hashOf(data)))
		whole, err := mine.IsWhole(hashOf(data))
		require.NoError(t, err)
		require.True(t, whole)
		_, err = mine.Stat(hashOf([]byte("another")))
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = mine.Stat("no hash")
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	require.Equal(t, 3, s.sent.count(mine.sql.row))
	require.Zero(t, s.sent.count(mine.sql.changed))
}

// TestBlobsOfOthers: a row that is not what its name says is never read, and written anew where its blob is stored; one
// that changes while it is open is not read on; a row without such a name is none.
func TestBlobsOfOthers(t *testing.T) {
	table, s := openTable(t, Options{})
	b := openBlobs(t, s)
	data := []byte("an image")
	name := hashOf(data)
	write := `INSERT INTO ` + tableOfBlobs(table) + ` VALUES ($1, $2, 5) ON CONFLICT (path) DO UPDATE SET content = excluded.content`
	for _, path := range []string{"../../etc/passwd", strings.ToUpper(name), name + ".png", ""} {
		table.Do(t, write, path, data)
	}
	table.Do(t, write, name, []byte("another image"))
	items, err := storage.List(b, "")
	require.NoError(t, err)
	require.Equal(t, []storage.Item{{Name: name, Kind: storage.KindFile}}, items)
	_, err = b.Open(name)
	require.ErrorIs(t, err, unix.EIO)
	require.ErrorContains(t, err, "not what its name says")
	whole, err := b.IsWhole(name)
	require.NoError(t, err)
	require.False(t, whole)
	st, err := b.Stat(name)
	require.NoError(t, err)
	require.ErrorIs(t, putBlob(b, name, st.Token, []byte("no")), fs.ErrInvalid)
	require.NoError(t, putBlob(b, name, st.Token, data))
	whole, err = b.IsWhole(name)
	require.NoError(t, err)
	require.True(t, whole)
	o, err := b.Open(name)
	require.NoError(t, err)
	table.Do(t, write, name, []byte("An image"))
	_, err = o.ReadAt(make([]byte, 8), 0)
	require.ErrorIs(t, err, storage.ErrStale)
	_, err = b.Open(name)
	require.ErrorIs(t, err, unix.EIO, "it was whole before")
	_, err = b.Append(name, data)
	require.ErrorIs(t, err, storage.ErrUnsupported)
	_, err = b.Replace(name, storage.Replacement{Head: data})
	require.ErrorIs(t, err, storage.ErrUnsupported)
}

// TestBlobsMadeAtOnce: several mounts may make the table at the same time; one that is something else is refused, and so is
// a user who may not make it.
func TestBlobsMadeAtOnce(t *testing.T) {
	table, s := openTable(t, Options{})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			b, err := s.OpenBlobs(t.Context(), true)
			if assert.NoError(t, err) {
				b.Close()
			}
		})
	}
	all.Wait()
	table.Do(t, `ALTER TABLE `+tableOfBlobs(table)+` ADD more text`)
	_, err := s.OpenBlobs(t.Context(), true)
	require.ErrorContains(t, err, "is not one of blobs")

	table.Do(t, `DROP TABLE `+tableOfBlobs(table))
	role := "reads" + strings.Split(table.Name, ".")[0]
	table.Do(t, `CREATE ROLE `+role+` LOGIN; GRANT USAGE ON SCHEMA `+strings.Split(table.Name, ".")[0]+` TO `+role+`; GRANT SELECT ON `+table.Name+` TO `+role)
	reader := open(t, strings.Replace(table.Source("&prefix="+prefix), "tester@", role+"@", 1), Options{})
	_, err = reader.OpenBlobs(t.Context(), true)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "CREATE TABLE IF NOT EXISTS")
}
