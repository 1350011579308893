package sessioncore

import (
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the tests of generated files share.

// readExactly reads a document whole, compares its size, and reads it again in odd pieces.
func readExactly(t testing.TB, d *Document, err error) []byte {
	t.Helper()
	require.NoError(t, err)
	defer d.Close()
	text, err := io.ReadAll(io.NewSectionReader(d, 0, d.Size()))
	require.NoError(t, err)
	require.EqualValues(t, d.Size(), len(text), "the size that is told")
	n, err := d.ReadAt(make([]byte, 1), d.Size())
	require.Zero(t, n)
	require.Equal(t, io.EOF, err)
	rnd := rand.New(rand.NewPCG(uint64(len(text)), 1))
	for range 10 {
		at := rnd.IntN(len(text) + 1)
		p := make([]byte, min(rnd.IntN(5000), len(text)-at))
		_, err := d.ReadAt(p, int64(at))
		require.NoError(t, err)
		require.Equal(t, string(text[at:at+len(p)]), string(p), "at %d", at)
	}
	return text
}

func leafOf(t testing.TB, s *Snapshot) Entry {
	t.Helper()
	leaf, err := s.Leaf()
	require.NoError(t, err)
	return leaf
}

// demoDir holds the sessions of the demo.
const demoDir = "../testdata/demo/sessions"
