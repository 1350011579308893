package view

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// diffOf is the difference of two branches.
func diffOf(t *testing.T, a, b ShownBranch) string {
	t.Helper()
	var out strings.Builder
	to := &Screen{Writer: bufio.NewWriter(&out)}
	differs, err := to.WriteDiff(context.Background(), [2]string{}, [2]ShownBranch{a, b}, false)
	require.NoError(t, errors.Join(err, to.Flush()))
	require.Equal(t, out.Len() > 0, differs)
	return strings.TrimPrefix(out.String(), "--- \n+++ \n")
}

func TestDiff(t *testing.T) {
	var snaps [2]*sessioncore.Snapshot // of sessions with the same lines
	branches := func(entries string) (of [2]ShownBranch) {
		for i, name := range strings.Fields(entries) {
			of[i] = ShownBranch{snaps[i], sessioncore.NoEntry}
			if name != "-" {
				var err error
				of[i].End, err = snaps[i].Find(name)
				require.NoError(t, err)
			}
		}
		return of
	}
	sessiontest.Page(t, "testdata/diffs.txt", func(t *testing.T, entries, session, want string) {
		for i := range snaps {
			if session != "" { // else it is that of the case before
				snaps[i] = snapshotOf(t, sessiontest.Header, session+"\n")
			}
		}
		compared := branches(entries)
		require.Equal(t, want, diffOf(t, compared[0], compared[1]), entries)
	})

	full := errors.New("full")
	_, err := diff(context.Background(), branches("e1 e3"), func(_, _ string) error { return full })
	require.ErrorIs(t, err, full)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(full)
	_, err = diff(ctx, branches("e1 e3"), func(_, _ string) error { return nil })
	require.Error(t, err)
}

// TestDiffOfLongTurns: one that is too long to be compared is shown whole, and many turns are compared all the same.
func TestDiffOfLongTurns(t *testing.T) {
	var lines []string
	for i := range 20 {
		lines = append(lines, sessiontest.MessageLine(i, `{"role":"assistant","content":"`+strings.Repeat("word ", 100_000)+`"}`))
	}
	s := snapshotOf(t, sessiontest.Header, lines...)
	out := diffOf(t, ShownBranch{s, 8}, ShownBranch{s, 19})
	require.Equal(t, 9, strings.Count(out, "\n-word"))
	require.Equal(t, 20, strings.Count(out, "\n+word"))
}

// TestEdits: what each tool of each agent that changes files was told to change is a diff.
func TestEdits(t *testing.T) {
	sessiontest.NotUnderRace(t)
	sessiontest.Page(t, "testdata/edits.txt", func(t *testing.T, _, call, want string) {
		got := transcriptBody(t, sessiontest.MessageLine(0, asks+`{"type":"toolCall",`+call+"}]}"))
		_, got, _ = strings.Cut(got, "`**")
		require.Equal(t, want, got, call)
	})
	// What is too long, or too much, is cut and said.
	for _, input := range []string{
		`"old_string":"` + strings.Repeat(`x\n`, 9000) + `","new_string":"y"`,
		`"edits":[` + strings.Repeat(`{"new_string":""},`, 100_000) + `{"new_string":""}]`,
		`"edits":[` + strings.Repeat(`{"new_string":"`+strings.Repeat("x ", 3000)+`"},`, 500) + `{"new_string":""}]`,
	} {
		body := transcriptBody(t, sessiontest.MessageLine(0, asks+`{"type":"toolCall","name":"Edit","input":{"path":"a",`+input+"}}]}"))
		require.Less(t, len(body), maxOutput+10_000)
		require.Contains(t, body, "\n\n*Not all of it is shown:* [the whole entry](entries/e0.json)\n")
	}
	// The work grows with the arguments, and not faster.
	transcriptBody(t, sessiontest.MessageLine(0,
		asks+`{"type":"toolCall","name":"Edit","input":{`+strings.Repeat(`"description":"x",`, 200_000)+`"command":"x"}}]}`))
}

// TestCommon: what lists have in common is in both in that order, and of those that differ little it is as much as can be.
func TestCommon(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		list := func() []int {
			l := make([]int, rnd.IntN(12))
			for i := range l {
				l[i] = rnd.IntN(4)
			}
			return l
		}
		a := list()
		b := list()
		count := 0
		last := commonRun{}
		for _, run := range common(a, b) {
			require.Equal(t, a[run.a:run.a+run.n], b[run.b:run.b+run.n])
			require.GreaterOrEqual(t, run.a, last.a+last.n, "the runs of a are in order")
			require.GreaterOrEqual(t, run.b, last.b+last.n, "the runs of b are in order")
			count += run.n
			last = run
		}
		require.Equal(t, commonRun{len(a), len(b), 0}, last)
		require.Equal(t, longestCommon(a, b), count, "%v %v", a, b)
	}
	const long = 50_000
	ascending := make([]int, long)
	descending := make([]int, long)
	for i := range long {
		ascending[i] = i
		descending[i] = -i
	}
	require.Equal(t, []commonRun{{0, 0, 1}, {long, long, 0}}, common(ascending, descending), "only the first element, 0")
}

// longestCommon returns the length of the longest common subsequence of two lists, by the textbook.
func longestCommon(a, b []int) int {
	longest := make([][]int, len(a)+1) // of the first i elements of a and the first j of b
	longest[0] = make([]int, len(b)+1)
	for i := 1; i <= len(a); i++ {
		longest[i] = make([]int, len(b)+1)
		for j := 1; j <= len(b); j++ {
			if a[i-1] == b[j-1] {
				longest[i][j] = longest[i-1][j-1] + 1
			} else {
				longest[i][j] = max(longest[i-1][j], longest[i][j-1])
			}
		}
	}
	return longest[len(a)][len(b)]
}
