package transcript

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/report"

	"github.com/stretchr/testify/require"
)

// follows checks of two versions that the newer one is said to continue the older one only where it does.
func follows(t *testing.T, old, now *document.Document) bool {
	t.Helper()
	said := now.Continues(old)
	if said {
		require.True(t, strings.HasPrefix(textOf(t, now), textOf(t, old)))
	}
	return said
}

// versionsOf are the files of a snapshot that can be followed.
type versionsOf struct {
	snap       *sessioncore.Snapshot
	transcript *document.Document
	lists      []*document.Document
	entries    *document.Document
}

func openVersions(t *testing.T, s *testSession) versionsOf {
	snap, err := s.session.Acquire(context.Background())
	require.NoError(t, err)
	leaf := sessiontest.Leaf(t, snap)
	labels, err := report.Labels(snap)
	require.NoError(t, err)
	problems, err := report.Problems(context.Background(), snap, nil)
	require.NoError(t, err)
	v := versionsOf{snap: snap, lists: []*document.Document{labels, problems}}
	v.transcript, err = Render(context.Background(), snap, leaf, testLinks)
	require.NoError(t, err)
	if leaf != sessioncore.NoEntry {
		v.entries, _, err = snap.Branch(leaf).EntriesDocument(context.Background())
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, d := range append(v.lists, v.transcript) {
			d.Close()
		}
		if v.entries != nil {
			v.entries.Close()
		}
		snap.Release()
	})
	return v
}

func textOf(t *testing.T, r interface {
	io.ReaderAt
	Size() int64
}) string {
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	require.NoError(t, err)
	require.Len(t, b, int(r.Size()))
	return string(b)
}

// TestContinues: of sessions that grow, branch, repeat ids and are written anew, a version is said to continue
// another one only where it begins with it, and where a branch just goes on it is.
func TestContinues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 5))
	yes, no := 0, 0
	for range 60 {
		content := sessiontest.Header
		s := newTestSession(t, content)
		n := 0
		seen := []versionsOf{openVersions(t, s)}
		for range 12 {
			goesOn := false
			message := func(id, parent string) string {
				shapes := []string{`{"role":"user","content":"u %d"}`, `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"toolCall","id":"1","name":"x","arguments":{"n":%d}}]}`,
					`{"role":"toolResult","toolCallId":"1","toolName":"x","content":"` + strings.Repeat("long ", 3000*rnd.IntN(2)) + `%d"}`}
				return fmt.Sprintf(`{"type":"message","id":"%s","parentId":%s,"message":%s}`+"\n", id, parent, fmt.Sprintf(shapes[rnd.IntN(3)], n))
			}
			parent := "null"
			if n > 0 {
				parent = fmt.Sprintf(`"e%d"`, n-1)
			}
			var more string
			switch k := rnd.IntN(10); {
			case k < 6:
				more, goesOn = message(fmt.Sprint("e", n), parent), true
				n++
			case k == 6 && n > 1: // another branch
				more = message(fmt.Sprint("e", n), fmt.Sprintf(`"e%d"`, rnd.IntN(n)))
				n++
			case k == 7 && n > 1: // an id comes again
				more = message(fmt.Sprint("e", rnd.IntN(n)), `"e0"`)
			case k == 8 && n > 0:
				more = fmt.Sprintf(`{"type":"label","id":"l%d%d","parentId":"e%d","targetId":"e%d","label":"%d"}`+"\nbroken\n", n, len(content), n-1, rnd.IntN(n), rnd.IntN(3))
			default: // a rewrite: the same entries in another file, or one of them changed
				if k == 9 && rnd.IntN(2) == 0 {
					content = strings.Replace(content, "u ", "U ", 1)
				}
				content = strings.Replace(content, `"cwd":"/w"`, `"cwd": "/w"`, 1)
				require.NoError(t, os.WriteFile(s.Path+".new", []byte(content), 0o644))
				require.NoError(t, os.Rename(s.Path+".new", s.Path))
			}
			content += more
			s.Append(more)
			now := openVersions(t, s)
			last := seen[len(seen)-1]
			for _, old := range seen {
				for i := range now.lists {
					follows(t, old.lists[i], now.lists[i])
				}
				if follows(t, old.transcript, now.transcript) {
					yes++
				} else {
					no++
				}
				if old.entries != nil && now.entries != nil && now.entries.Continues(old.entries) {
					require.True(t, strings.HasPrefix(textOf(t, now.entries), textOf(t, old.entries)))
				}
			}
			if before := sessiontest.Leaf(t, last.snap); goesOn && before != sessioncore.NoEntry {
				require.Equal(t, now.snap.BranchBelow(before) == sessiontest.Leaf(t, now.snap), now.entries.Continues(last.entries))
			}
			seen = append(seen, now)
		}
	}
	require.Greater(t, yes, 100)
	require.Greater(t, no, 100)
}

// TestBranchBelow: where a branch has got to, and which entries end one.
func TestBranchBelow(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+sessiontest.MessageLine(0, `{"role":"user","content":"a"}`)+sessiontest.MessageLine(1, `{"role":"user","content":"b"}`)+
		`{"type":"message","id":"x","parentId":"e0","message":{"role":"user","content":"c"}}`+"\n")
	snap, err := s.session.Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	require.Equal(t, []sessioncore.Entry{2, 1, 2}, []sessioncore.Entry{snap.BranchBelow(0), snap.BranchBelow(1), snap.BranchBelow(2)})
	require.Equal(t, []bool{false, true, true}, []bool{snap.EndsBranch(0), snap.EndsBranch(1), snap.EndsBranch(2)})
	s.Append(`{"type":"custom","customType":"sessionfs/leaf","id":"m","parentId":"e0","data":{"targetId":"e0"}}` + "\n")
	snap, err = s.session.Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	require.Equal(t, []sessioncore.Entry{0, 1, 2}, []sessioncore.Entry{snap.BranchBelow(0), snap.BranchBelow(1), snap.BranchBelow(2)})
	require.True(t, snap.EndsBranch(0), "the leaf")
}
