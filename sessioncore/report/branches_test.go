package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
)

var at, labelAt, moveAt = sessiontest.At, sessiontest.LabelAt, sessiontest.MoveAt

// archiving is an entry that archives another one, or brings it back.
func archiving(n int, id, parent, target string, archived bool) string {
	line := at(n, id, parent, fmt.Sprintf(`,"targetId":"%s","archived":%t`, target, archived))
	return strings.Replace(line, `"type":"custom"`, `"type":"archive"`, 1)
}

// branchFields returns the fields of the rows of branches.tsv.
func branchFields(t *testing.T, s *sessioncore.Snapshot) (fields [][]string) {
	doc, err := Branches(context.Background(), s)
	text := string(sessiontest.ReadExactly(t, doc, err))
	require.True(t, utf8.ValidString(text))
	for line := range strings.Lines(text) {
		fields = append(fields, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		require.Len(t, fields[len(fields)-1], 6, line)
	}
	require.Equal(t, []string{"id", "entries", "time", "label", "current", "said"}, fields[0])
	return fields[1:]
}

// rows are the rows of branches.tsv without the times, which all are of 2026-01-05T09:00, and the last column.
func rows(t *testing.T, s *sessioncore.Snapshot) (out []string) {
	for _, f := range branchFields(t, s) {
		require.Regexp(t, `^2026-01-05T09:00:\d\d\.000Z$`, f[2])
		out = append(out, strings.Join(slices.Delete(f[:5], 2, 3), " "))
	}
	return out
}

// entryLine returns the entry of a line of testdata/branches.txt.
func entryLine(line string) string {
	var n int
	var id, parent, kind, target, value string
	_, _ = fmt.Sscan(line, &n, &id, &parent, &kind, &target, &value)
	if parent == "-" {
		parent = ""
	}
	switch kind {
	case "move":
		return moveAt(n, id, parent, target)
	case "archive":
		return archiving(n, id, parent, target, value == "true")
	case "label":
		return labelAt(n, id, parent, target, value)
	}
	return at(n, id, parent, "")
}

// TestBranchesDocument: branches.tsv has the rows of the page; names that no file may have are encoded, and a long one
// is cut.
func TestBranchesDocument(t *testing.T) {
	sessiontest.Page(t, "testdata/branches.txt", func(t *testing.T, name, give, want string) {
		content := ""
		for line := range strings.Lines(give) {
			content += entryLine(line)
		}
		s := snapshotOf(t, content)
		require.Equal(t, want, strings.Join(append(rows(t, s), ""), "\n"), name)
		checkRows(t, s, Tips(s))
	})
	long := strings.Repeat("x", 300)
	for entries, want := range map[string][]string{
		at(1, "current", "", "") + at(2, "x/y z", "", "") + at(3, `\n`, "", "") + at(4, "", "", ""): {
			"% 1 - yes", "%0A 1 - lost", "x%2Fy z 1 - lost", "%63urrent 1 - lost"},
		at(1, long, "", ""): {long[:200] + "~" + names.Hash([]byte(long)) + " 1 - yes"},
		at(1, "a", "", "") + labelAt(2, "l", "a", "l", `a\tb\n\\c\r\ud800 é`): {`l 2 a\tb\n\\c\r\ud800 é yes`},
	} {
		require.Equal(t, want, rows(t, snapshotOf(t, entries)))
	}
}

// TestBranchSaid: the last column is what the user said last on the branch, as one short line.
func TestBranchSaid(t *testing.T) {
	sessiontest.Table(t, "testdata/said.txt", func(t *testing.T, _, content string) string {
		return branchFields(t, snapshotOf(t, said(1, "u", "", content)+at(2, "a", "u", "")+at(3, "b", "a", "")))[0][5]
	})
}

// TestBranchOfAnotherLeaf: where the leaf was moved in memory only, a client resumes elsewhere.
func TestBranchOfAnotherLeaf(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+at(1, "a", "", "")+at(2, "b", "a", "")+at(3, "c", "a", "")+at(4, "d", "a", ""))
	target := "b"
	done, err := s.session.TryMove(context.Background(), &target)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, []string{"d 2 - no", "c 2 - lost", "b 2 - yes"}, rows(t, s.acquire(t)))
}

// checkRows compares branches.tsv with what walks of each path tell.
func checkRows(t *testing.T, s *sessioncore.Snapshot, tips []sessioncore.Entry) {
	current := shownNode(s, sessiontest.Leaf(t, s))
	if current != sessioncore.NoEntry && !slices.Contains(tips, current) {
		tips = append(slices.Clone(tips), current)
		slices.SortFunc(tips, s.CompareNewest)
	}
	rows := branchFields(t, s)
	require.Len(t, rows, len(tips))
	for i, e := range tips {
		label, state, words := "-", "lost", ""
		for at := e; at != sessioncore.NoEntry && len(s.Tree().Children(at)) < 2; at = s.Tree().Parent(at) {
			id, _ := s.ID(at)
			label = names.OrDash(s.LabelOf(id))
			if label != "-" {
				break
			}
		}
		if e == current {
			state = "yes"
		} else if isArchived(t, s, e) {
			state = "archived"
		}
		for _, at := range slices.Backward(s.Path(e)) {
			if s.IsRequest(at) {
				text, err := s.EntryText(at)
				require.NoError(t, err)
				words, _ = firstSaid(s.Request(at, text), beginning)
				break
			}
		}
		field := func(text string) string { return string(names.AppendLabelField(nil, text)) }
		length := fmt.Sprint(len(s.Path(e)))
		time := rows[i][2] // which the caller checks
		want := []string{s.Name(e, currentBranch), length, time, field(label), state, field(names.OrDash(words))}
		require.Equal(t, want, rows[i])
	}
}

// isArchived reports whether the last archive entry for an entry, or one for an entry above it in the tree, hides it.
func isArchived(t *testing.T, s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	for ; e != sessioncore.NoEntry; e = s.Tree().Parent(e) {
		id, ok := s.ID(e)
		for by := sessioncore.Entry(s.Len()) - 1; ok && by >= 0; by-- {
			if s.Kind(by) != sessioncore.TypeArchive {
				continue
			}
			text, err := s.EntryText(by)
			require.NoError(t, err)
			target, isText := text.Member("targetId").Text()
			if found, err := s.Find(target); !isText || err != nil || found != e || target != id {
				continue
			}
			if string(text.Member("archived")) == "true" {
				return true
			}
			break
		}
	}
	return false
}

// TestManyTips: what is told of all tips costs no more than the session is long.
func TestManyTips(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const trunk, tips = 30_000, 30_000
	var text strings.Builder
	text.WriteString(chainOf(trunk))
	for i := range tips {
		text.WriteString(at(2, fmt.Sprint(i), fmt.Sprint("e", trunk-1), ""))
	}
	s := snapshotOf(t, text.String())
	list := rows(t, s) // walking each path would be 900 million steps
	require.Len(t, list, tips)
	require.Equal(t, fmt.Sprintf("%d %d - yes", tips-1, trunk+1), list[0])
	require.Equal(t, fmt.Sprintf("0 %d - lost", trunk+1), list[tips-1])
}

// FuzzBranches: whatever is in a file, the rows of branches.tsv are what walks of each path tell.
func FuzzBranches(f *testing.F) {
	fuzzSnapshots(f, func(t *testing.T, snap *sessioncore.Snapshot) {
		checkByLabel(t, snap)
		tips := Tips(snap)
		checkRows(t, snap, tips)
		checkLog(t, snap, 2*maxColumns)
		for i, e := range tips {
			if i > 0 {
				before := tips[i-1]
				byTime := snap.Time(before).Compare(snap.Time(e))
				require.GreaterOrEqual(t, byTime, 0, "newest first")
				require.True(t, byTime > 0 || before > e, "of one time the last one first")
			}
			facts := pathsTo(snap, []sessioncore.Entry{e})
			require.EqualValues(t, len(snap.Path(e)), facts[e].length)
		}
	})
}

// TestByLabel: by-label/ has a name for each label of an entry that is there, and of two entries the last one.
func TestByLabel(t *testing.T) {
	s := snapshotOf(t, at(1, "a", "", "")+at(2, "b", "a", "")+at(3, "a/b", "b", "")+
		labelAt(4, "l1", "b", "a", "first")+labelAt(5, "l2", "b", "b", "with/slash")+labelAt(6, "l3", "b", "a/b", "first")+
		labelAt(7, "l4", "b", "nobody", "first")+labelAt(8, "l5", "b", "nobody", "ghost")+labelAt(9, "l6", "b", "l1", "")+
		labelAt(10, "l7", "b", "l2", "../x")+labelAt(11, "l8", "b", "l3", strings.Repeat("é", 300)))
	var got []string
	for _, l := range ByLabel(s) {
		got = append(got, fmt.Sprintf("%s %s %d", l.Name, s.Name(l.Entry), l.Time.Second()))
		found, err := FindByLabel(s, l.Name)
		require.NoError(t, err)
		require.Equal(t, l, found)
	}
	require.Equal(t, []string{"with%2Fslash b 5", "first a%2Fb 6", "%2E.%2Fx l2 10", names.FileName(strings.Repeat("é", 300)) + " l3 11"}, got)
	for _, name := range []string{"ghost", "", "with/slash", "second", "first "} {
		_, err := FindByLabel(s, name)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, name)
	}
}

// TestLongLabels: labels that are shown alike, as both are cut, have the names of the whole ones.
func TestLongLabels(t *testing.T) {
	long := strings.Repeat("x", 5000)
	s := snapshotOf(t, at(1, "a", "", "")+at(2, "b", "a", "")+labelAt(3, "l1", "b", "a", long+"1")+labelAt(4, "l2", "b", "b", long+"2"))
	require.Equal(t, s.LabelOf("a"), s.LabelOf("b"))
	var got []string
	for _, l := range ByLabel(s) {
		got = append(got, l.Name+" "+s.Name(l.Entry))
	}
	require.Equal(t, []string{names.FileName(long+"1") + " a", names.FileName(long+"2") + " b"}, got)
}

// checkByLabel: a name leads to an entry that has the label.
func checkByLabel(t *testing.T, s *sessioncore.Snapshot) {
	all := map[string]bool{}
	for _, l := range ByLabel(s) {
		require.False(t, all[l.Name])
		all[l.Name] = true
		id, _ := s.ID(l.Entry)
		require.Equal(t, l.Name, names.FileName(s.LabelOf(id)))
		found, err := FindByLabel(s, l.Name)
		require.NoError(t, err)
		require.Equal(t, l, found)
	}
	for _, l := range slices.Backward(s.Labels()) {
		e, err := s.Find(l.Target)
		if name := names.FileName(l.Label); err == nil && all[name] {
			found, err := FindByLabel(s, name)
			require.NoError(t, err)
			require.Equal(t, e, found.Entry, "the last one that got it")
			delete(all, name)
		}
	}
	require.Empty(t, all)
}
