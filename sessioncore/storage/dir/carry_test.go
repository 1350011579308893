//go:build linux

package dir

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestReplaceCarriesOver: the new file has what was appended to the old one right before and after it lost its name,
// also through a descriptor opened before.
func TestReplaceCarriesOver(t *testing.T) {
	s := openTemp(t)
	writeDisk(t, s, "x.jsonl", "old\n")
	var late *os.File
	done := make(chan error, 1)
	sys := kernel
	sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		stray, err := os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = stray.WriteString("before\n")
		require.NoError(t, err)
		require.NoError(t, stray.Close())
		late, err = os.OpenFile(pathOf(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		go func() {
			time.Sleep(carryLimit / 10)
			_, err := late.WriteString("after\nin two")
			time.Sleep(carryLimit / 10)
			_, err2 := late.WriteString(" writes\ntorn")
			done <- errors.Join(err, err2, late.Close())
		}()
		return unix.Renameat2(fromDir, from, toDir, to, flags)
	}
	token := storagetest.Stat(t, s, "x.jsonl").Token
	st, err := s.replaceWith(sys, "x.jsonl", storage.Replacement{Expect: token, Write: storagetest.Content("new\n"), Ready: func(io.Writer) (storage.Token, error) { return token, nil }})
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, "new\nbefore\nafter\nin two writes\ntorn", readDisk(t, s, "x.jsonl"))
	require.Equal(t, storagetest.Stat(t, s, "x.jsonl"), st, "of the file with all of that")
	require.Empty(t, storagetest.Leftovers(t, s.Path()))

	before := readDisk(t, s, "x.jsonl")
	_, err = s.Replace("x.jsonl", storage.Replacement{Expect: st.Token, Write: storagetest.Content("no\n"), Ready: func(io.Writer) (storage.Token, error) { return st.Token, errors.ErrUnsupported }})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Equal(t, before, readDisk(t, s, "x.jsonl"))
	require.Empty(t, storagetest.Leftovers(t, s.Path()))
}
