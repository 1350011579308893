package sessioncore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/dir"
)

// TestConformanceOfModel: every session of the cases reads as the real client reads it.
func TestConformanceOfModel(t *testing.T) {
	for _, c := range sessiontest.Cases(t) {
		expected, err := filepath.Glob(filepath.Join(c.Dir, "expected/*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, expected, c.Name)
		for _, file := range expected {
			if filepath.Base(file) == "list.json" {
				continue
			}
			t.Run(c.Name+"/"+filepath.Base(file), func(t *testing.T) {
				base := strings.TrimSuffix(filepath.Base(file), ".json") + ".jsonl"
				sessions, err := filepath.Glob(filepath.Join(c.Dir, "agent/sessions/*", base))
				require.NoError(t, err)
				require.Len(t, sessions, 1)
				if st, err := os.Stat(sessions[0]); err == nil && st.Size() > 500_000 && sessiontest.UnderRace {
					t.Skip("a large session from one goroutine: without the race detector")
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				checkSession(t, sessions[0], filepath.Join(c.Dir, "agent/blobs"), rawjson.Value(strings.TrimSpace(string(want))), c.Diff)
			})
		}
	}
}

// TestOwnCases: the same for the project's own cases, which need no other folder, and for the stores of other clients.
func TestOwnCases(t *testing.T) {
	own, err := filepath.Glob("../testdata/cases/*.want.json")
	require.NoError(t, err)
	require.NotEmpty(t, own)
	check := func(file, blobs, want string) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(want)
			require.NoError(t, err)
			checkSession(t, file, blobs, rawjson.Value(strings.TrimSpace(string(text))), sessiontest.Difference{})
		})
	}
	for _, want := range own {
		check(strings.TrimSuffix(want, ".want.json")+".jsonl", "../testdata/cases/blobs", want)
	}
	for _, file := range sessiontest.StoreFiles(t) {
		store, _, _ := strings.Cut(file, "/sessions/")
		check(file, store+"/blobs", "../testdata/wants/"+strings.TrimSuffix(filepath.Base(file), ".jsonl")+".want.json")
	}
}

// openSession returns a snapshot of a file on disk.
func openSession(t testing.TB, file string) (*Snapshot, error) {
	store := NewStore(sessiontest.OpenDir(t, filepath.Dir(file)))
	t.Cleanup(store.Close)
	return sessiontest.Acquire(t, store.Session(filepath.Base(file)))
}

// checkSession compares a session file with the client's answers want, as far as diff does not permit differences. blobs is the
// directory of blobs, which need not exist.
func checkSession(t *testing.T, file, blobs string, want rawjson.Value, diff sessiontest.Difference) {
	var s rawjson.Scanner
	end, st := s.SkipValue(want, 0)
	require.Equal(t, rawjson.OK, st)
	require.Len(t, want, end)
	snap, err := openSession(t, file)
	if string(want.Member("refused")) == "true" {
		require.ErrorIs(t, err, ErrNotSession)
		return
	}
	require.NoError(t, err)
	header, err := snap.HeaderDocument()
	require.NoError(t, err)
	if shown := sessiontest.ReadObject(t, header); want.Member("header") != nil {
		compareJSON(t, "header", want.Member("header"), shown)
	}
	whole := want
	if slot := want.Member("withoutSlot"); slot != nil {
		want = slot // contexts by the rules of 14.9.9; its header is the one without the slot
	}
	a := &answers{t: t, snap: snap, want: want, diff: diff}
	if files, err := dir.Open(blobs); err == nil {
		a.blobs = dirBlobs{files}
	}
	if string(want.Member("oracle")) == "null" {
		_, err := snap.Context(context.Background(), a.leaf(), a.blobs)
		require.NoError(t, err)
		return
	}
	a.normalize = string(whole.Member("idsNormalized")) == "true"
	a.check()
}

// answers compares what a snapshot says with what the client said.
type answers struct {
	t         *testing.T
	snap      *Snapshot
	want      rawjson.Value
	diff      sessiontest.Difference
	blobs     document.Blobs
	normalize bool
}

func (a *answers) leaf() Entry { return sessiontest.Leaf(a.t, a.snap) }

// id returns an entry's id as JSON, by position where the client's ids are not stored.
func (a *answers) id(e Entry) string {
	if e == NoEntry {
		return "null"
	}
	if a.normalize {
		return fmt.Sprintf(`"#%d"`, e)
	}
	if id, ok := a.snap.ID(e); ok {
		return string(rawjson.AppendQuoted(nil, id))
	}
	return "null"
}

// compare compares JSON with the client's answer for a key, if there is one and no difference is permitted.
func (a *answers) compare(key, got string) {
	want := a.want.Member(key)
	if want == nil || slices.Contains(a.diff.Keys, key) {
		return
	}
	compareJSON(a.t, key, want, rawjson.Value(got))
}

// check compares all that the client has answered.
func (a *answers) check() {
	leaf := a.leaf()
	if a.want.Member("leafId") != nil || a.snap.Len() == 0 {
		a.compare("leafId", a.id(leaf))
	}
	a.compare("labels", a.labels())
	if leaf != NoEntry {
		a.compare("branch", a.list(a.snap.Path(leaf)))
	}
	a.compare("entries", a.entries())
	a.compare("tree", a.tree())
	a.checkBranches()
	a.checkContext("context", a.want.Member("context"), leaf)
	if sum, ok := a.want.Member("contextSha256").Text(); ok && !a.differs("contextSha256") && !a.differs("context") {
		doc, err := a.snap.Context(context.Background(), leaf, a.blobs)
		require.NoError(a.t, err)
		require.Equal(a.t, sum, sumOf(a.shaped(sessiontest.ReadObject(a.t, doc), a.want.Member("context"))), "contextSha256")
	}
	if a.differs("contexts") && a.diff.Only == "" {
		return
	}
	for m := range a.want.Member("contexts").EachMember {
		key, _ := m.Key.Text()
		at := NoEntry
		if key != "null" { // the context before any entry
			at = a.find(key)
		}
		a.checkContext("contexts", m.Value, at)
	}
}

// checkBranches: entries.jsonl of every tip is the files of the entries on its path one behind the other.
func (a *answers) checkBranches() {
	for e := range Entry(a.snap.Len()) {
		if !a.snap.Tree().IsTip(e) {
			continue
		}
		require.Equal(a.t, concatenated(a.t, a.snap, a.snap.Path(e)), string(wholeBranch(a.t, a.snap.Branch(e))), "the branch to %s", a.id(e))
	}
}

// find returns the entry of an id as a.id writes it.
func (a *answers) find(id string) Entry {
	if a.normalize {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "#"))
		require.NoError(a.t, err)
		return Entry(n)
	}
	e, err := a.snap.Find(id)
	require.NoError(a.t, err)
	return e
}

func (a *answers) differs(key string) bool { return slices.Contains(a.diff.Keys, key) }

// shaped leaves out of a context what the oracle's version has no keys for (the README says which).
func (a *answers) shaped(got, want rawjson.Value) rawjson.Value {
	if want.IsObject() && want.Member("sha256") == nil && want.Member("selectedMCPToolNames") == nil {
		got = without(without(got, "selectedMCPToolNames"), "hasPersistedMCPToolSelection")
	}
	return got
}

// checkContext compares the context at an entry with the client's, which may be a hash. key is the key of the answer, for
// permitted differences.
func (a *answers) checkContext(key string, want rawjson.Value, at Entry) {
	if want == nil {
		return
	}
	doc, err := a.snap.Context(context.Background(), at, a.blobs)
	require.NoError(a.t, err, "context at %s", a.id(at))
	got := sessiontest.ReadObject(a.t, doc)
	if want.Member("oracleFails") != nil {
		return
	}
	switch {
	case a.differs(key) && a.diff.Only == "":
		return
	case a.differs(key):
		want, got = without(want, a.diff.Only), without(got, a.diff.Only)
	}
	if sum, ok := want.Member("sha256").Text(); ok {
		require.Equal(a.t, sum, sumOf(got), "context at %s", a.id(at))
		return
	}
	compareJSON(a.t, fmt.Sprintf("context at %s", a.id(at)), without(want, "configuredThinkingLevel"), a.shaped(got, want))
}

// sumOf returns the SHA-256 of a canonical text.
func sumOf(v rawjson.Value) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(sessiontest.Canonical(v))))
}

// without returns an object without a member.
func without(object rawjson.Value, key string) rawjson.Value {
	var edits rawjson.Edits
	isKey := func(m rawjson.Member) bool { return m.KeyIs(key) }
	edits = edits.Object(object, 0, "", isKey)
	return edits.Apply(object)
}

// list returns the ids of entries as JSON.
func (a *answers) list(entries []Entry) string {
	var ids []string
	for _, e := range entries {
		ids = append(ids, a.id(e))
	}
	return "[" + strings.Join(ids, ",") + "]"
}

// labels returns the labels in effect as an object, by target.
func (a *answers) labels() string {
	var members []string
	for _, l := range a.snap.Labels() {
		target := string(rawjson.AppendQuoted(nil, l.Target))
		label := string(rawjson.AppendQuoted(nil, l.Label))
		members = append(members, target+":"+label)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// entries lists id, parentId and type as the entry's file shows them.
func (a *answers) entries() string {
	var out []string
	for e := range Entry(a.snap.Len()) {
		text, err := a.snap.ShownText(e)
		require.NoError(a.t, err)
		var fields []string
		parent := a.snap.dialect.ParentKey
		for _, key := range []string{"id", parent, "type"} {
			v := text.Member(key)
			if v == nil {
				continue
			}
			shown := string(v)
			if a.normalize && key == "id" {
				shown = a.id(e)
			}
			if a.normalize && key == parent && !v.Missing() {
				shown = a.id(a.snap.Parent(e))
			}
			fields = append(fields, fmt.Sprintf("%q:%s", key, shown))
		}
		out = append(out, "{"+strings.Join(fields, ",")+"}")
	}
	return "[" + strings.Join(out, ",") + "]"
}

// tree returns the tree as JSON, with the labels.
func (a *answers) tree() string { return a.nodes(a.snap.Tree().Roots()) }

// nodes returns the subtrees of siblings as JSON.
func (a *answers) nodes(siblings []Entry) string {
	var list []byte
	for _, e := range siblings {
		node := `{"id":` + a.id(e)
		id, _ := a.snap.ID(e)
		label := a.snap.LabelOf(id)
		if label != "" {
			node += `,"label":` + string(rawjson.AppendQuoted(nil, label))
		}
		node += `,"children":` + a.nodes(a.snap.Tree().Children(e)) + `}`
		list = rawjson.AppendListed(list, node)
	}
	return "[" + string(list) + "]"
}

// compareJSON compares two values, and shows the text around the first difference. name is the value's name for an error.
func compareJSON(t *testing.T, name string, want, got rawjson.Value) {
	t.Helper()
	wantText := sessiontest.Canonical(want)
	gotText := sessiontest.Canonical(got)
	if wantText == gotText {
		return
	}
	at := 0
	for at < len(wantText) && at < len(gotText) && wantText[at] == gotText[at] {
		at++
	}
	around := func(text string) string {
		from := max(0, at-150)
		to := min(len(text), at+250)
		return text[from:to]
	}
	t.Errorf("%s differs at %d:\nwant …%s\ngot  …%s", name, at, around(wantText), around(gotText))
}

// dirBlobs is a directory of blobs.
type dirBlobs struct{ *dir.Storage }

// Size implements document.Blobs.
func (d dirBlobs) Size(hash string) (int64, error) {
	st, err := d.Stat(hash)
	return st.Size, err
}
