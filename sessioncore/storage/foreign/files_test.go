package foreign

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// doubling makes two lines of each.
type doubling struct{}

func (doubling) IsSession(name string) bool                               { return strings.HasSuffix(name, ".jsonl") }
func (doubling) About(string, storage.Object, int64, bool) (About, error) { return About{}, nil }
func (doubling) Converter(About, storage.Object) Converter                { return doubling{} }
func (doubling) Add(out []byte, v rawjson.Value, _ int64) []byte {
	return append(append(append(append(out, v...), '\n'), v...), '\n')
}
func (doubling) Tail(out []byte) []byte { return out }

// TestGivenBack: a session whose conversion was given back has the state that it had with it, until its file changes. So
// what was found in it need not be looked for again.
func TestGivenBack(t *testing.T) {
	const sessions = 3 * maxKept
	raw := memory.New()
	name := func(i int) string { return fmt.Sprintf("p/%03d.jsonl", i) }
	for i := range sessions {
		require.NoError(t, raw.WriteFile(name(i), []byte(`{"a":1}`+"\n")))
	}
	files := New(raw, doubling{}, nil, t.TempDir())
	token := map[int]storage.Token{}
	for round := range 2 {
		for i := range sessions {
			obj, err := files.Open(name(i))
			require.NoError(t, err)
			st, err := obj.Stat()
			require.NoError(t, err)
			require.EqualValues(t, 16, st.Size)
			require.NoError(t, obj.Close())
			if round > 0 {
				require.Equal(t, token[i], st.Token, "it was converted again")
			}
			token[i] = st.Token
		}
		require.LessOrEqual(t, len(files.slots), maxKept+1)
		for i := range sessions {
			st, err := files.Stat(name(i))
			require.NoError(t, err)
			require.Equal(t, token[i], st.Token, "%d", i)
		}
	}
	require.NoError(t, raw.WriteFile(name(0), []byte(`{"b":1}`+"\n")))
	st, err := files.Stat(name(0))
	require.NoError(t, err)
	require.NotEqual(t, token[0], st.Token)
}
