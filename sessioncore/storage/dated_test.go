package storage_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
)

// TestStorageDated: a new file gets the time that is set while it is written, and keeps it until it changes.
func TestStorageDated(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	every.Each(t, func(t *testing.T, s every.Storage) {
		defer storagetest.Lock(t, s, "x.jsonl")()
		st, err := s.Replace("x.jsonl", storage.Token{}, func(out io.Writer) error {
			out.(storage.Dated).SetModified(at)
			_, err := io.WriteString(out, "{}\n")
			return err
		})
		require.NoError(t, err)
		require.True(t, st.ModTime().Equal(at), st.ModTime())
		require.Equal(t, st, storagetest.Stat(t, s, "x.jsonl"))
		_, err = s.Append("x.jsonl", []byte("{}\n"))
		require.NoError(t, err)
		require.True(t, storagetest.Stat(t, s, "x.jsonl").ModTime().After(at))
	})
}
