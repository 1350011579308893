package report

import (
	"cmp"
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
	"sessionfs/sessioncore/storage/storagetest/memory"
)

var at, labelAt, moveAt = sessiontest.At, sessiontest.LabelAt, sessiontest.MoveAt

// archiving is an entry that archives another one, or brings it back.
func archiving(n int, id, parent, target string, archived bool) string {
	line := at(n, id, parent, fmt.Sprintf(`,"targetId":"%s","archived":%t`, target, archived))
	return strings.Replace(line, `"type":"custom"`, `"type":"archive"`, 1)
}

// rows are the rows of branches.tsv without the times, which all are of 2026-01-05T09:00.
func rows(t *testing.T, s *sessioncore.Snapshot) []string {
	doc, err := Branches(context.Background(), s)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(sessiontest.ReadExactly(t, doc, nil)), "\n")
	require.Equal(t, "id\tentries\ttime\tlabel\tcurrent\tsaid\n", lines[0])
	require.Empty(t, lines[len(lines)-1])
	var out []string
	for _, line := range lines[1 : len(lines)-1] {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 6, line)
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

func TestBranchesDocument(t *testing.T) {
	sessiontest.Page(t, "testdata/branches.txt", func(t *testing.T, name, give, want string) {
		content := sessiontest.Header
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
		require.Equal(t, want, rows(t, snapshotOf(t, sessiontest.Header+entries)))
	}
}

// said is an entry with a message of the user.
func said(n int, id, parent, content string) string {
	return strings.Replace(at(n, id, parent, `,"message":{"role":"user","content":`+content+`}`), `"custom"`, `"message"`, 1)
}

// TestBranchSaid: the last column is what the user said last on the branch, as one short line.
func TestBranchSaid(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for content, want := range map[string]string{
		`"fix it"`: "fix it", `"  two\n\tlines\u2003here \n"`: "two lines here", `""`: "-", `null`: "-", `[]`: "-", `{"text":"x"}`: "-",
		`[{"type":"image","data":"x"},{"type":"text","text":" "},{"type":"text","text":"look"}]`: "look",
		`"` + long + `"`: strings.TrimSpace(long[:80]) + "…", `"` + strings.Repeat("é", 80) + ` "`: strings.Repeat("é", 80),
		`"back\\slash \u001b[31m \ud800"`: `back\\slash \u001b[31m \ud800`,
	} {
		s := snapshotOf(t, sessiontest.Header+said(1, "u", "", content)+at(2, "a", "u", "")+at(3, "b", "a", ""))
		doc, err := Branches(context.Background(), s)
		require.NoError(t, err)
		fields := strings.Split(string(sessiontest.ReadExactly(t, doc, nil)), "\t")
		require.Equal(t, want+"\n", fields[len(fields)-1], content)
	}
}

// TestBranchOfAnotherLeaf: where the leaf was moved in memory only, a client resumes elsewhere.
func TestBranchOfAnotherLeaf(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("s.jsonl", []byte(sessiontest.Header+at(1, "a", "", "")+at(2, "b", "a", "")+at(3, "c", "a", "")+at(4, "d", "a", ""))))
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	session, target := store.Session("s.jsonl"), "b"
	done, err := session.TryMove(context.Background(), &target)
	require.NoError(t, err)
	require.True(t, done)
	s := sessiontest.Snapshot(t, session)
	require.Equal(t, []string{"d 2 - no", "c 2 - lost", "b 2 - yes"}, rows(t, s))
}

// checkRows compares branches.tsv with what walks of each path tell.
func checkRows(t *testing.T, s *sessioncore.Snapshot, tips []sessioncore.Entry) {
	doc, err := Branches(context.Background(), s)
	require.NoError(t, err)
	lines := strings.Split(string(sessiontest.ReadExactly(t, doc, nil)), "\n")
	leaf := sessiontest.Leaf(t, s)
	current := shownNode(s, leaf)
	if current != sessioncore.NoEntry && !slices.Contains(tips, current) {
		tips = append(slices.Clone(tips), current)
		slices.SortFunc(tips, s.CompareNewest)
	}
	require.Len(t, lines, len(tips)+2)
	for i, e := range tips {
		f := strings.Split(lines[i+1], "\t")
		require.Len(t, f, 6, lines[i+1])
		require.True(t, utf8.ValidString(lines[i+1]))
		require.Equal(t, s.Name(e, currentBranch), f[0])
		require.Equal(t, fmt.Sprint(len(s.Path(e))), f[1])
		want := "-"
		for at := e; at != sessioncore.NoEntry && len(s.Tree().Children(at)) < 2; at = s.Tree().Parent(at) {
			id, _ := s.ID(at)
			if label := s.LabelOf(id); label != "" {
				want = string(names.AppendLabelField(nil, label))
				break
			}
		}
		require.Equal(t, want, f[3])
		state := "lost"
		if e == current {
			state = "yes"
		} else if isArchived(t, s, e) {
			state = "archived"
		}
		require.Equal(t, state, f[4])
		said := ""
		for _, at := range slices.Backward(s.Path(e)) {
			if s.Kind(at) == sessioncore.TypeMessage && s.Role(at) == sessioncore.RoleUser {
				text, err := s.EntryText(at)
				require.NoError(t, err)
				said, _ = firstSaid(text.Member("message").Member("content"))
				break
			}
		}
		require.Equal(t, string(names.AppendLabelField(nil, cmp.Or(said, "-"))), f[5])
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

// snapshotOf returns a snapshot of a session with that text.
func snapshotOf(t *testing.T, text string) *sessioncore.Snapshot {
	return sessiontest.Snapshot(t, newTestSession(t, text).session)
}

// TestManyTips: what is told of all tips costs no more than the session is long.
func TestManyTips(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const trunk, tips = 30_000, 30_000
	var text strings.Builder
	text.WriteString(sessiontest.Header)
	for i := range trunk {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint(i - 1)
		}
		text.WriteString(at(1, fmt.Sprint(i), parent, ""))
	}
	for i := range tips {
		text.WriteString(at(2, fmt.Sprint(trunk+i), fmt.Sprint(trunk-1), ""))
	}
	s := snapshotOf(t, text.String())
	list := rows(t, s) // walking each path would be 900 million steps
	require.Len(t, list, tips)
	require.Equal(t, fmt.Sprintf("%d %d - yes", trunk+tips-1, trunk+1), list[0])
	require.Equal(t, fmt.Sprintf("%d %d - lost", trunk, trunk+1), list[tips-1])
}

// FuzzBranches: whatever is in a file, the rows of branches.tsv are what walks of each path tell.
func FuzzBranches(f *testing.F) {
	pool := sessiontest.AddSeeds(f, func(data []byte) { f.Add(data, uint64(0)); f.Add(data, uint64(len(data))) })
	f.Fuzz(func(t *testing.T, data []byte, mix uint64) {
		store := sessioncore.NewStore(sessiontest.Memory(t, pool.Mixed(data, mix)))
		t.Cleanup(store.Close)
		snap, err := store.Session(sessiontest.FileName).Acquire(context.Background())
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession)
			return
		}
		defer snap.Release()
		checkByLabel(t, snap)
		tips := Tips(snap)
		checkRows(t, snap, tips)
		checkLog(t, snap, 2*maxColumns)
		for i, e := range tips {
			if i > 0 {
				require.False(t, snap.Time(e).After(snap.Time(tips[i-1])) || snap.Time(e).Equal(snap.Time(tips[i-1])) && e > tips[i-1], "newest first")
			}
			require.EqualValues(t, len(snap.Path(e)), pathsTo(snap, []sessioncore.Entry{e})[e].length)
		}
	})
}

func TestByLabel(t *testing.T) {
	s := snapshotOf(t, sessiontest.Header+at(1, "a", "", "")+at(2, "b", "a", "")+at(3, "a/b", "b", "")+
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
