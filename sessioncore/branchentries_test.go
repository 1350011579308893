package sessioncore

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// wholeBranch reads a branch's entries.jsonl to its end and checks its size.
func wholeBranch(t testing.TB, b *Branch) []byte {
	t.Helper()
	r, state, err := b.EntriesDocument(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Size, r.Size())
	known, err := b.EntriesState(context.Background())
	require.NoError(t, err)
	require.Equal(t, state, known)
	return wholeDocument(t, r)
}

// concatenated returns the content that entries.jsonl must have: the files of its entries, one behind the other.
func concatenated(t testing.TB, s *Snapshot, path []Entry) string {
	t.Helper()
	var out strings.Builder
	for _, e := range path {
		doc, err := s.EntryDocument(e)
		require.NoError(t, err)
		out.Write(wholeDocument(t, doc))
	}
	return out.String()
}

// entriesCases are sessions with entries of every kind that entries.jsonl puts together.
var entriesCases = map[string]string{
	"together":         sessiontest.Header + at(1, "a", "", "") + at(2, "b", "a", "") + at(3, "c", "b", ""),
	"apart":            sessiontest.Header + at(1, "a", "", "") + at(2, "x", "a", "") + at(3, "b", "a", "") + at(4, "y", "x", "") + at(5, "c", "b", ""),
	"backwards":        sessiontest.Header + at(3, "c", "b", "") + at(2, "b", "a", "") + at(1, "a", "", ""),
	"no final newline": sessiontest.Header + at(1, "a", "", "") + strings.TrimSuffix(at(2, "b", "a", ""), "\n"),
	"CR LF":            strings.ReplaceAll(sessiontest.Header+at(1, "a", "", "")+at(2, "b", "a", "")+at(3, "c", "b", ""), "\n", "\r\n"),
	"blank lines":      sessiontest.Header + at(1, "a", "", "") + "\n \n" + at(2, "b", "a", "") + "\t" + at(3, "c", "b", ""),
	"over lines":       sessiontest.Header + at(1, "a", "", "") + strings.ReplaceAll(at(2, "b", "a", ""), ",", ",\r\n") + at(3, "c", "b", ""),
	"torn":             sessiontest.Header + at(1, "a", "", "") + "{\"type\":\n" + at(2, "b", "a", ""),
	"version 1":        strings.Replace(sessiontest.Header, `"version":3`, `"version":1`, 1) + at(1, "a", "", "") + at(2, "b", "", "") + at(3, "c", "", ""),
	"version 2": strings.Replace(sessiontest.Header, `"version":3`, `"version":2`, 1) + at(1, "a", "", "") +
		`{"id":"h","parentId":"a","type":"message","message":{"role":"hookMessage"}}` + "\n" + at(3, "c", "h", ""),
	"circle":      sessiontest.Header + at(1, "a", "b", "") + at(2, "b", "a", "") + at(3, "c", "b", ""),
	"repeated id": sessiontest.Header + at(1, "a", "", "") + at(2, "b", "a", "") + at(3, "a", "b", ""),
	"one":         sessiontest.Header + at(1, "a", "", ""),
}

// TestBranchEntriesTogether: entries that follow each other in the file are read with one call.
func TestBranchEntriesTogether(t *testing.T) {
	for name, runs := range map[string]int{"together": 1, "apart": 3, "backwards": 3, "no final newline": 2, "over lines": 3, "version 1": 3, "torn": 2} {
		s := snapshotOf(t, entriesCases[name])
		b := s.Branch(Entry(s.lastID - 1))
		if name == "backwards" {
			b = s.Branch(0)
		}
		doc, _, err := b.EntriesDocument(context.Background())
		require.NoError(t, err)
		require.EqualValues(t, runs*56, doc.Memory(), name)
		doc.Close()
	}
}

// TestBranchEntriesReadNothing: neither size nor reading takes memory for content, but for what is rendered.
func TestBranchEntriesAllocateNothing(t *testing.T) {
	s := snapshotOf(t, entriesCases["together"]).Branch(2)
	r, _, err := s.EntriesDocument(context.Background())
	require.NoError(t, err)
	defer r.Close()
	p := make([]byte, r.Size())
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = r.ReadAt(p, 0) }))
}

// TestBranchEntriesOfChangedFile: growth changes nothing for a reader. After the file is overwritten in place, a read is
// stale if it has a part of an entry with another text.
func TestBranchEntriesOfChangedFile(t *testing.T) {
	text := sessiontest.Header
	parent := ""
	for i := range 30 {
		id := fmt.Sprintf("e%02d", i)
		text += at(i, id, parent, "")
		parent = id
	}
	for name, c := range map[string]struct{ change, first, last string }{ // in the text, of the same length; the stale entries
		"growth":     {"", "", ""},
		"the header": {"/w", "", ""},
		"an entry":   {"e17", "e17", "e19"}, // e18 names it
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestSession(t, text, ByUnknown)
			snap := s.acquire()
			r, _, err := snap.Branch(29).EntriesDocument(context.Background())
			require.NoError(t, err)
			defer r.Close()
			want := text[len(sessiontest.Header):]
			lineOf := func(id string) int { return strings.Index(want, `{"type":"custom","id":"`+id) }
			if c.change == "" {
				s.Append(at(40, "new", "e29", ""))
			} else {
				f, err := os.OpenFile(s.Path, os.O_WRONLY, 0)
				require.NoError(t, err)
				_, err = f.WriteAt([]byte(strings.ReplaceAll(text, c.change, strings.Repeat("x", len(c.change)))), 0)
				require.NoError(t, err)
				require.NoError(t, f.Close())
			}
			size := 100
			for off := 0; off < len(want); off += size / 3 {
				p := make([]byte, size)
				n, err := r.ReadAt(p, int64(off))
				end := min(off+size, len(want))
				if c.first != "" && off < lineOf(c.last) && end > lineOf(c.first) {
					require.ErrorIs(t, err, storage.ErrStale, "at %d", off)
					continue
				}
				if err != io.EOF {
					require.NoError(t, err, "at %d", off)
				}
				require.Equal(t, want[off:end], string(p[:n]))
			}
		})
	}
}

// TestBranchState: two contents have two states; growth elsewhere leaves a state as it is.
func TestBranchState(t *testing.T) {
	state := func(text string, e Entry) EntryState {
		s, err := snapshotOf(t, sessiontest.Header+text).Branch(e).EntriesState(context.Background())
		require.NoError(t, err)
		return s
	}
	one := at(1, "a", "", "") + at(2, "b", "a", "")
	require.Equal(t, state(one, 1), state(one+at(3, "c", "b", ""), 1))
	require.Equal(t, state(one, 1), state(at(9, "x", "", "")+one, 2), "wherever it lies")
	require.NotEqual(t, state(one, 1), state(at(1, "a", "", "")+at(3, "b", "a", ""), 1))
	require.NotEqual(t, state(one, 1), state(at(3, "a", "", "")+at(2, "b", "a", ""), 1))
	require.NotEqual(t, state(one, 1), state(one, 0))
}
