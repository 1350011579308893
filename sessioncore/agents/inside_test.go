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

func newInside() *Inside {
	return &Inside{
		May: func(lines []byte) bool { return bytes.Contains(lines, []byte(`"of"`)) },
		Share: func() func(*Record, Place, Give) {
			return func(r *Record, at Place, give Give) {
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
	files, in := sessiontest.OpenDir(t, home), newInside()
	file := home + "/s.jsonl"
	sessiontest.WriteFile(t, file, "")
	is := func(want string) {
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
	_, err = in.Subagents(files, "none.jsonl")
	require.True(t, storage.IsMissing(err))
}
