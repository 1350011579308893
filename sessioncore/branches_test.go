package sessioncore

import (
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
)

var at, labelAt, moveAt = sessiontest.At, sessiontest.LabelAt, sessiontest.MoveAt

// FuzzBranches: whatever is in a file, its branches are named as the design says; the oracle walks each path by itself.
func FuzzBranches(f *testing.F) {
	pool := sessiontest.AddSeeds(f, func(data []byte) { f.Add(data, uint64(0)); f.Add(data, uint64(len(data))) })
	for _, text := range entriesCases {
		f.Add([]byte(text), uint64(0))
	}
	for i, text := range []string{
		at(1, "a", "b", "") + at(2, "b", "c", "") + at(3, "c", "a", "") + at(4, "d", "c", "") + at(5, "e", "d", "") +
			at(6, "f", "b", ""), // a circle with branches
		at(1, "a", "a", "") + at(2, "a", "b", "") + at(3, "b", "a", "") + at(4, "a", "gone", ""),
		at(1, "a", "", "") + moveAt(2, "m", "n", "x") + moveAt(3, "n", "m", "x") + at(4, "b", "n", ""),
		at(1, "a", "", "") + moveAt(2, "m", "a", "a") + labelAt(3, "l", "m", "m", "current") + labelAt(4, "current", "l", "a", "current"),
		at(1, "current", "", "") + at(2, "current", "current", "") + at(3, "%63urrent", "", "") + labelAt(4, "l", "", "l", `\t\n\\\r\ud800`),
	} {
		f.Add([]byte(sessiontest.Header+text), uint64(0))
		f.Add([]byte(sessiontest.Header+text), uint64(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, mix uint64) {
		snap := fuzzSnapshot(t, pool.Mixed(data, mix))
		if snap == nil {
			return
		}
		checkBranches(t, snap)
	})
}

// checkBranches checks the names, the labels and the contents of a session's branches.
func checkBranches(t *testing.T, s *Snapshot) {
	seen := map[string]bool{}
	for e := range Entry(s.Len()) {
		require.NotEmpty(t, s.PathLabel(e))
		require.LessOrEqual(t, len(s.PathLabel(e)), maxPathLabel)
		text, err := s.ShownText(e)
		require.NoError(t, err)
		require.Equal(t, pathLabelByTheBook(text), s.PathLabel(e), "%s", text)
		name := s.Name(e, "current")
		found, err := s.FindBranch(name, "current")
		if _, ok := s.ID(e); !ok {
			require.ErrorIs(t, err, ErrNotFound)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, e, found, name)
		require.False(t, seen[name], "two branches are called %q", name)
		seen[name] = true
		checkFileName(t, name)
		require.NotEqual(t, "current", name)
		checkBranch(t, s, e)
	}
}

// checkBranch checks the entries of the branch to e, and its entries.jsonl.
func checkBranch(t *testing.T, s *Snapshot, e Entry) {
	b := s.Branch(e)
	require.Equal(t, s.Path(e), b.Entries())
	require.Equal(t, concatenated(t, s, b.Entries()), string(wholeBranch(t, b)))
}

// TestRecordSize: the index keeps 64 bytes an entry (docs/design.md section 10: a few tens).
func TestRecordSize(t *testing.T) {
	require.EqualValues(t, 64, unsafe.Sizeof(indexRecord{}))
}

// TestPathLabel: the path label of an entry, by the members of its text.
func TestPathLabel(t *testing.T) {
	sessiontest.Table(t, "testdata/path-labels.txt", func(t *testing.T, _, entry string) string {
		return snapshotOf(t, sessiontest.Header+`{"id":"a",`+entry+`}`+"\n").PathLabel(0)
	})
}

// pathLabelByTheBook is the rule of docs/design.md, branches/, to the letter, from the text that an entry's file shows.
func pathLabelByTheBook(text rawjson.Value) string {
	label, _ := text.Member("type").Text()
	role, _ := text.Member("message").Member("role").Text()
	if label == "message" && role != "" {
		label = role
		if role == "toolResult" || role == "tool_result" {
			label = "toolResult"
			tool := rawjson.Value(nil)
			for m := range text.Member("message").EachMember {
				if m.KeyIs("toolName") || m.KeyIs("tool_name") {
					tool = m.Value
				}
			}
			if name, _ := tool.Text(); name != "" {
				label += "-" + name
			}
		}
	}
	name := names.FileName(label)
	for i := min(len(name), maxPathLabel); ; i-- {
		if i == len(name) || utf8.RuneStart(name[i]) && !strings.Contains(name[max(0, i-2):i], "%") {
			return name[:i]
		}
	}
}
