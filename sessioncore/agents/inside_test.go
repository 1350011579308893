package agents

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// newInside returns an Inside for records that name their subagent in "of".
func newInside() *Inside {
	return &Inside{
		May: func(lines []byte) bool { return bytes.Contains(lines, []byte(`"of"`)) },
		Share: func() func(*Record, RecordPlace, Give) {
			return func(r *Record, at RecordPlace, give Give) {
				id, _ := r.Member("of").Text()
				if id != "" {
					give(id, at)
				}
			}
		},
	}
}

// TestInside: the subagents of a file are found as it grows, in lines of any length, and anew where it is another file.
func TestInside(t *testing.T) {
	home := t.TempDir()
	files := sessiontest.OpenDir(t, home)
	in := newInside()
	file := home + "/s.jsonl"
	sessiontest.WriteFile(t, file, "")
	is := func(want string) { // also for one that knows nothing of the file before
		t.Helper()
		for _, in := range []*Inside{in, newInside()} {
			got, err := in.Subagents(files, "s.jsonl")
			require.NoError(t, err)
			require.Equal(t, want, strings.Join(got, " "))
		}
	}
	is("")
	for _, step := range []struct{ add, want string }{
		{`{"of":"a"}` + "\n", "a"},
		{`{"x":1}` + "\n" + `{"of":"b","x":{"of":"no"}}` + "\n" + `{"of":"a"}` + "\n", "a b"},
		{`{"of":"c"`, "a b"},
		{`}`, "a b c"},
		{"\n" + `not JSON "of"` + "\n\x00\x00" + `{"of":"no"}` + "\n", "a b c"},
		{`{"x":"` + strings.Repeat("x", 2*jsonl.ChunkSize), "a b c"},
		{strings.Repeat("x", jsonl.ChunkSize) + `","of":"d"}` + "\n", "a b c d"},
		{strings.Repeat(`{"x":1}`+"\n", jsonl.ChunkSize/8) + `{"of":"e"}` + "\n", "a b c d e"},
	} {
		sessiontest.AppendTo(t, file, step.add)
		is(step.want)
	}
	var crowd strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&crowd, `{"of":"%d"}`+"\n", i)
	}
	sessiontest.WriteFile(t, file, crowd.String())
	ids, err := in.Subagents(files, "s.jsonl")
	require.NoError(t, err)
	require.Len(t, ids, maxInside)
	sessiontest.WriteFile(t, file, `{"of":"z"}`)
	is("z")
	sessiontest.WriteFile(t, file, `{}`)
	is("")
	_, err = in.Subagents(files, "none.jsonl")
	require.True(t, storage.IsMissing(err))
}

// checkPart checks the text of a part, read at once and in pieces, and the lines in the file of the part's lines.
func checkPart(t *testing.T, obj *partObject, want string, lines []int64) {
	t.Helper()
	st, err := obj.Stat()
	require.NoError(t, err)
	text := make([]byte, st.Size)
	_, err = obj.ReadAt(text, 0)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
	for i, line := range lines {
		require.Equal(t, line, obj.lineOf(int64(i+1)))
	}
	raw, err := obj.Object.Stat()
	require.NoError(t, err)
	require.Equal(t, raw.Size, st.Size-obj.Joined())
	const piece = 7
	for at := range text {
		end := min(at+piece, len(text))
		n, err := obj.ReadAt(text[at:end], int64(at))
		require.NoError(t, err)
		require.Equal(t, want[at:at+n], string(text[at:at+n]))
	}
}

// TestPart: the records of a subagent are read as a file of their own, with their lines in the whole one,
// as that grows, and also after the places of others took the memory.
func TestPart(t *testing.T) {
	home := t.TempDir()
	files := sessiontest.OpenDir(t, home)
	in := newInside()
	sessiontest.WriteFile(t, home+"/s.jsonl", "")
	open := func(of string) *partObject {
		obj, err := files.Open("s.jsonl")
		require.NoError(t, err)
		t.Cleanup(func() { _ = obj.Close() })
		return in.Part("s.jsonl", of, obj).(*partObject)
	}
	is := func(obj *partObject, want string, lines ...int64) {
		t.Helper()
		checkPart(t, obj, want, lines)
	}
	const a1, a2, a3, b1, b2 = `{"of":"a","n":1}`, `{"of":"a","n":2}`, `{"of":"a",` + "\n" + `"n":3}`, `{"of":"b","n":1}`, `{"of":"b","n":2}`
	live := open("a")
	other := open("b")
	is(live, "")
	grow := func(add string) { sessiontest.AppendTo(t, home+"/s.jsonl", add) }
	grow("{}\n" + a1 + "\n" + a2 + "\n")
	is(live, a1+"\n"+a2+"\n", 2, 3)
	is(other, "")
	grow(b1 + " more\n\n" + a3 + "\n" + a1[:3])
	is(live, a1+"\n"+a2+"\n"+a3+"\n", 2, 3, 6, 7)
	is(other, b1+"\n", 4)
	grow(a1[3:])
	is(live, a1+"\n"+a2+"\n"+a3+"\n"+a1+"\n", 2, 3, 6, 7, 8)
	grow("\n" + b2)
	is(other, b1+"\n"+b2+"\n", 4, 9)
	grow("x\n" + a2 + "\n") // it was no value after all
	is(other, b1+"\n"+b2+"\n", 4, 9)
	is(live, a1+"\n"+a2+"\n"+a3+"\n"+a1+"\n"+a2+"\n", 2, 3, 6, 7, 8, 10)
	is(open("a"), a1+"\n"+a2+"\n"+a3+"\n"+a1+"\n"+a2+"\n", 2, 3, 6, 7, 8, 10)

	sessiontest.WriteFile(t, home+"/many.jsonl", strings.Repeat(a1+"\n"+b1+"\n", maxPlaces))
	_, err := in.Subagents(files, "many.jsonl")
	require.NoError(t, err)
	require.Equal(t, 1, in.kept.Len(), "its places are too many beside others")
	grow(b1 + "\n")
	is(other, b1+"\n"+b2+"\n"+b1+"\n", 4, 9, 11)
	ids, err := in.Subagents(files, "many.jsonl")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, ids)
}
