package sessiontest

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// Document is a generated file, implemented by the model's documents.
type Document interface {
	io.ReaderAt
	Size() int64
	Close()
}

// ReadExactly reads a whole document, checks its size, and reads it again in pieces of random size. err is the
// error of making the document, which must be nil.
func ReadExactly(t testing.TB, d Document, err error) []byte {
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

// ReadObject reads a document that must be one JSON object on one line.
func ReadObject(t testing.TB, d Document) rawjson.Value {
	t.Helper()
	defer d.Close()
	b, err := io.ReadAll(io.NewSectionReader(d, 0, d.Size()))
	require.NoError(t, err)
	require.Equal(t, byte('\n'), b[len(b)-1])
	text := slices.Clip(b[:len(b)-1])
	require.NotContains(t, string(text), "\n", "one line")
	require.True(t, rawjson.IsValidObject(rawjson.Value(text)), "valid JSON")
	return rawjson.Value(text)
}

// Leaf returns the leaf of a session.
func Leaf[Entry any](t testing.TB, s interface{ Leaf() (Entry, error) }) Entry {
	t.Helper()
	leaf, err := s.Leaf()
	require.NoError(t, err)
	return leaf
}

// Canonical returns the canonical JSON of the conformance README: keys sorted, only the last of repeated keys,
// numbers as doubles.
func Canonical(v rawjson.Value) string {
	switch {
	case v.IsObject():
		members := map[string]string{}
		var keys []string
		for m := range v.EachMember {
			key, _ := m.Key.Text()
			if _, ok := members[key]; !ok {
				keys = append(keys, key)
			}
			members[key] = Canonical(m.Value)
		}
		slices.Sort(keys)
		var out []string
		for _, k := range keys {
			out = append(out, string(rawjson.AppendQuoted(nil, k))+":"+members[k])
		}
		return "{" + strings.Join(out, ",") + "}"
	case v.IsArray():
		var out []string
		for e := range v.EachElement {
			out = append(out, Canonical(e))
		}
		return "[" + strings.Join(out, ",") + "]"
	case v.IsString():
		text, _ := v.Text()
		return string(rawjson.AppendQuoted(nil, text))
	case v.IsNumber():
		return canonicalNumber(v)
	}
	return string(v)
}

// canonicalNumber formats a double as JSON.stringify does.
func canonicalNumber(v rawjson.Value) string {
	f, _ := strconv.ParseFloat(string(v), 64)
	if math.IsInf(f, 0) {
		return "null"
	}
	if f == 0 {
		return "0"
	}
	a := math.Abs(f)
	if a >= 1e-6 && a < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}
