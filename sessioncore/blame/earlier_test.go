package blame

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/search"
)

// movedSession returns a session that names /p/lib before n calls move directories into it.
func movedSession(n int) string {
	var text strings.Builder
	text.WriteString(sessiontest.Header)
	entry := 0
	add := func(message string) {
		entry++
		text.WriteString(sessiontest.MessageLine(entry, message))
	}
	add(`{"role":"assistant","content":[{"type":"toolCall","id":"ls","name":"ls","arguments":{"path":"/p/lib"}}]}`)
	for i := range n {
		call := `{"type":"toolCall","id":"%d","name":"bash","arguments":{"command":"mv cd%d /p/lib"}}`
		add(`{"role":"assistant","content":[` + fmt.Sprintf(call, i, i) + `]}`)
		add(fmt.Sprintf(`{"role":"toolResult","toolCallId":"%d","toolName":"bash","content":[]}`, i))
	}
	return text.String()
}

// TestTracerWork: of any number of moves into a directory that was there before, some are tried, each with a search, and the
// calls of their session are read once.
func TestTracerWork(t *testing.T) {
	file, err := search.NewTouched("/p/lib/a.go")
	require.NoError(t, err)
	sessiontest.Linear(t, 100, func(n int) int64 {
		files := sessiontest.Memory(t, []byte(movedSession(n)))
		store := sessioncore.NewStore(files)
		searcher := search.New(search.SearchedSessions{Files: files})
		searches := 0
		moves := 0
		tracer := Tracer{
			Search: func(ctx context.Context, m search.Matcher) (*search.Result, error) {
				searches++
				result, err := searcher.Search(ctx, m)
				_, isMoves := m.(*search.Moves)
				if isMoves {
					moves = len(result.Hits)
				}
				return result, err
			},
			Acquire: func(hit *search.Hit) (*sessioncore.Snapshot, error) {
				return store.Session(hit.File).Acquire(t.Context())
			},
		}
		work := sessiontest.WorkOf(func() {
			earlier, err := tracer.Earlier(t.Context(), file)
			require.NoError(t, err)
			require.Empty(t, earlier)
		})
		require.Equal(t, n, moves)
		require.Equal(t, 2+maxTried, searches, "for the file, for moves, and for the directory before each of some")
		return work.Scanned
	})
}
