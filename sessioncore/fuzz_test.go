package sessioncore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// The fuzz targets: whatever is in a file, it loads without a panic, and what is loaded keeps its
// promises. Seeds are the sessions of testdata; the oracles here are encoding/json and the text of the design.

// jsonDepth is the nesting up to which encoding/json can judge for us; it refuses more than 10,000.
const jsonDepth = 9_000

// fuzzSession puts data into a storage of its own.
func fuzzSession(t testing.TB, data []byte) (*memory.Storage, *Session) {
	files := sessiontest.Memory(t, data)
	store := NewStore(files)
	t.Cleanup(store.Close)
	return files, store.Session(sessiontest.FileName)
}

// fuzzSnapshot returns a snapshot of data, nil if that is no session.
func fuzzSnapshot(t *testing.T, data []byte) *Snapshot {
	_, session := fuzzSession(t, data)
	snap, err := sessiontest.Acquire(t, session)
	if err != nil {
		require.ErrorIs(t, err, ErrNotSession)
	}
	return snap
}

// FuzzLoad: a file that is read in one go and one that grows at a cut are the same session, or none.
func FuzzLoad(f *testing.F) {
	pool := sessiontest.AddSeeds(f, func(data []byte) {
		f.Add(data, uint(len(data)/2), uint64(0))
		f.Add(data, uint(len(data)-min(len(data), 3)), uint64(0))
		f.Add(data, uint(len(data)/3), uint64(len(data)))
	})
	f.Fuzz(func(t *testing.T, data []byte, cut uint, mix uint64) {
		data = pool.Mixed(data, mix)
		at := int(cut % uint(len(data)+1))
		_, whole := fuzzSession(t, data)
		files, grown := fuzzSession(t, data[:at])
		if snap, err := grown.Acquire(context.Background()); err == nil {
			checkSnapshot(t, snap, data[:at])
			defer snap.Release() // an older snapshot goes on being what it was
			before := describe(t, snap)
			defer func() { sameLines(t, before, describe(t, snap), "an older snapshot") }()
		}
		_, err := files.Append(sessiontest.FileName, data[at:])
		require.NoError(t, err)
		a, errA := whole.Acquire(context.Background())
		b, errB := grown.Acquire(context.Background())
		require.Equal(t, errA == nil, errB == nil, "in one go: %v, grown: %v", errA, errB)
		if errA != nil {
			require.ErrorIs(t, errA, ErrNotSession)
			require.ErrorIs(t, errB, ErrNotSession)
			return
		}
		defer a.Release()
		defer b.Release()
		checkSnapshot(t, a, data)
		sameLines(t, describe(t, a), describe(t, b), fmt.Sprintf("in one go, and grown at %d", at))
		_, err = whole.Probe(context.Background())
		require.NoError(t, err, "probe")
	})
}

// sameLines compares two descriptions and shows the first line that differs.
func sameLines(t *testing.T, want, got []string, what string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i], what)
	}
	require.Len(t, got, len(want), what)
}

// describe returns everything that users can see of a snapshot, a line for each entry and fact.
func describe(t *testing.T, s *Snapshot) []string {
	out := []string{fmt.Sprint(s.Len(), s.Version(), s.HeaderTime())}
	for e := range Entry(s.Len()) {
		id, ok := s.ID(e)
		r, whole := s.EntryRange(e)
		state, err := s.EntryState(e)
		require.NoError(t, err)
		doc, err := s.EntryDocument(e)
		require.NoError(t, err)
		if !whole { // whether the newline is on disk already is the one thing that growth may change
			r.Size = state.Size
			r.Offset = s.records[e].off
		}
		out = append(out, fmt.Sprintf("%q %v %q %v %q %v %v %v %v %q", id, ok, s.Name(e), s.Kind(e), s.PathLabel(e), s.Time(e), s.Parent(e), r, state,
			wholeDocument(t, doc)))
	}
	tree := s.Tree()
	for e := range Entry(s.Len()) {
		out = append(out, fmt.Sprint(tree.Has(e), tree.Parent(e), tree.Children(e)))
	}
	leaf := sessiontest.Leaf(t, s)
	out = append(out, fmt.Sprint(tree.Roots(), leaf), fmt.Sprintf("%+v", s.Labels()))
	header, err := s.HeaderDocument()
	require.NoError(t, err)
	title, err := s.Title()
	require.NoError(t, err)
	ctx, err := s.Context(context.Background(), leaf, nil)
	require.NoError(t, err)
	problems, _ := s.Problems()
	out = append(out, title, fmt.Sprint(problems))
	for _, doc := range []*document.Document{header, ctx} {
		out = append(out, string(wholeDocument(t, doc)))
	}
	return out
}

// wholeDocument reads a document to its end and checks that its size is what it has.
func wholeDocument(t testing.TB, d *document.Document) []byte {
	defer d.Close()
	b := make([]byte, d.Size()+1)
	n, err := d.ReadAt(b, 0)
	require.Equal(t, io.EOF, err)
	require.EqualValues(t, d.Size(), n, "a document's size")
	return b[:n]
}

// checkSnapshot checks the promises that hold for every session, data being its file.
func checkSnapshot(t *testing.T, s *Snapshot, data []byte) {
	checkEntries(t, s, data)
	checkObjectLines(t, s, data)
	checkNames(t, s)
	checkTree(t, s)
	problems, _ := s.Problems()
	for _, p := range problems {
		line := rawjson.AppendLine(nil, p)
		require.True(t, json.Valid(line), "problems.jsonl: %q", line)
		require.True(t, utf8.Valid(line))
	}
	targets := map[string]bool{}
	for _, l := range s.Labels() {
		require.False(t, targets[l.Target], "two labels on %q", l.Target)
		require.NotEmpty(t, l.Label)
		targets[l.Target] = true
	}
	leaf := sessiontest.Leaf(t, s)
	require.Less(t, int(leaf), s.Len())
}

// checkEntries: each entry is an object of the file, on the line that it is said to be on; entries stand
// one behind the other.
func checkEntries(t *testing.T, s *Snapshot, data []byte) {
	end := int64(0)
	for e := range Entry(s.Len()) {
		rec := &s.records[e]
		require.GreaterOrEqual(t, rec.off, end, "entry %d overlaps the one before", e)
		end = rec.off + int64(rec.size)
		require.LessOrEqual(t, end, int64(len(data)))
		text := data[rec.off:end]
		require.EqualValues(t, '{', text[0])
		if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) < jsonDepth {
			require.True(t, json.Valid(text), "entry %d: %q", e, text)
		}
		require.EqualValues(t, bytes.Count(data[:rec.off], []byte("\n"))+1, rec.line, "line of entry %d", e)
		lineStart := bytes.LastIndexByte(data[:rec.off], '\n') + 1
		before := bytes.TrimPrefix(data[lineStart:rec.off], []byte("\xEF\xBB\xBF"))
		require.Empty(t, bytes.Trim(before, " \t\r"), "text before entry %d", e)
		doc, err := s.EntryDocument(e)
		require.NoError(t, err)
		shown := wholeDocument(t, doc)
		require.Equal(t, 1, bytes.Count(shown, []byte("\n")), "one line")
		if rec.flags&recMigrated == 0 {
			want := bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("  ")), []byte("\n"), []byte(" "))
			require.Equal(t, string(want)+"\n", string(shown), "entry %d as persisted", e)
		}
	}
}

// checkObjectLines: a line that is by itself a JSON object is never swallowed or skipped (docs/format.md,
// Loading): from the header on each is the header, a second one, or an entry.
func checkObjectLines(t *testing.T, s *Snapshot, data []byte) {
	next := int64(0)   // the offset of the next line
	number := int64(0) // of the line
	for line := range bytes.Lines(data) {
		number++
		off := next
		next += int64(len(line))
		if off < s.header.end {
			continue
		}
		text := bytes.Trim(line, " \t\r\n")
		if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
			continue
		}
		var object map[string]any
		err := json.Unmarshal(text, &object)
		isHeader := object["type"] == "session" || object["type"] == "session_header"
		if err != nil || isHeader {
			continue
		}
		e := s.atLine(number)
		require.NotEqual(t, NoEntry, e, "the object on line %d is no entry: %q", number, text)
		rec := &s.records[e]
		require.Equal(t, string(text), string(data[rec.off:rec.off+int64(rec.size)]), "line %d", number)
	}
}

// checkNames: each entry is found by its name, and the names are ones that a directory can hold.
func checkNames(t *testing.T, s *Snapshot) {
	seen, trees := map[string]bool{}, map[string]bool{}
	for e := range Entry(s.Len()) {
		name := s.Name(e)
		require.False(t, seen[name], "two entries are called %q", name)
		seen[name] = true
		checkFileName(t, name+".json")
		got, err := s.FindName(name)
		require.NoError(t, err, name)
		require.Equal(t, e, got, "what is called %q", name)
		if !s.Tree().Has(e) {
			continue
		}
		name = s.Name(e, "a", "entry.json")
		require.False(t, trees[name], "two directories are called %q", name)
		trees[name] = true
		checkFileName(t, name)
		require.NotContains(t, []string{"a", "entry.json", ".deep"}, name)
		got, err = s.FindName(name, "a", "entry.json")
		require.NoError(t, err, name)
		require.Equal(t, e, got, "what is called %q where names are taken", name)
	}
}

// checkFileName checks that a directory can hold a name, neither hidden nor like an option.
func checkFileName(t *testing.T, name string) {
	require.NotEmpty(t, name)
	require.LessOrEqual(t, len(name), 255)
	require.False(t, name[0] == '.' || name[0] == '-' || strings.ContainsAny(name, "/\x00"), "%q", name)
}

// checkTree: every node is reached from the roots exactly once, and paths lead from a root to their end.
func checkTree(t *testing.T, s *Snapshot) {
	tree := s.Tree()
	seen := map[Entry]bool{}
	stack := slices.Clone(tree.Roots())
	require.True(t, slices.IsSorted(stack), "roots in file order")
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		require.False(t, seen[e], "entry %d is twice in the tree", e)
		seen[e] = true
		for _, kid := range tree.Children(e) {
			require.Equal(t, e, tree.Parent(kid))
			require.Equal(t, e, s.Parent(kid), "the tree says otherwise than parentId")
		}
		stack = append(stack, tree.Children(e)...)
	}
	for e := range Entry(s.Len()) {
		require.Equal(t, seen[e], tree.Has(e), "entry %d", e)
		id, ok := s.ID(e)
		newest, err := s.Find(id)
		isMove := s.records[e].flags&recLeafMove != 0
		require.Equal(t, ok && err == nil && newest == e, seen[e] || isMove && ok && newest == e, "entry %d in the tree", e)
		path := s.Path(e)
		require.Equal(t, e, path[len(path)-1])
		once := map[Entry]bool{}
		for i, p := range path {
			require.False(t, once[p], "a path goes through an entry twice")
			once[p] = true
			if i > 0 {
				require.Equal(t, path[i-1], s.Parent(p))
			}
		}
	}
}

// FuzzContext: the context at any entry, with blobs and without, is one line of JSON that can be read in parts.
func FuzzContext(f *testing.F) {
	blob, err := os.ReadFile("../testdata/cases/blobs/9ebf77e73aced4bbd51fd849ee7879e77e5df1fc0ceb70ec2238cd047dcd8950")
	require.NoError(f, err)
	sum := sha256.Sum256(blob)
	blobs := sessiontest.Blobs{hex.EncodeToString(sum[:]): blob}
	pool := sessiontest.AddSeeds(f, func(data []byte) {
		f.Add(data, uint(0), uint(len(data)/3), uint(100), uint64(0))
		f.Add(data, uint(3), uint(1), uint(7), uint64(len(data)))
	})
	f.Fuzz(func(t *testing.T, data []byte, at, off, size uint, mix uint64) {
		snap := fuzzSnapshot(t, pool.Mixed(data, mix))
		if snap == nil {
			return
		}
		leaf := sessiontest.Leaf(t, snap)
		for _, e := range []Entry{leaf, Entry(at%uint(snap.Len()+1)) - 1} {
			checkContext(t, snap, e, nil, off, size)
			checkContext(t, snap, e, blobs, off, size)
		}
	})
}

// checkContext: a context is one JSON object and a newline, of the size that it says, and every slice of
// it is the whole's.
func checkContext(t *testing.T, snap *Snapshot, e Entry, blobs document.Blobs, off, size uint) {
	doc, err := snap.Context(context.Background(), e, blobs)
	require.NoError(t, err)
	snap.Retain() // wholeDocument closes it
	whole := wholeDocument(t, doc)
	defer doc.Close()
	require.Equal(t, 1, bytes.Count(whole, []byte("\n")), "one line: %q", whole)
	require.True(t, bytes.HasSuffix(whole, []byte("\n")))
	require.True(t, utf8.Valid(whole), "%q", whole)
	if bytes.Count(whole, []byte{'{'})+bytes.Count(whole, []byte{'['}) < jsonDepth {
		checkContextKeys(t, whole, snap.dialect)
	}
	start := int(off % uint(len(whole)+2))
	part := make([]byte, size%uint(len(whole)+2))
	n, err := doc.ReadAt(part, int64(start))
	want := whole[min(start, len(whole)):min(start+len(part), len(whole))]
	require.Equal(t, string(want), string(part[:n]))
	require.Equal(t, n < len(part), err == io.EOF, "%v", err)
}

// checkContextKeys checks that a context has the members of its dialect, and no message that is null.
func checkContextKeys(t *testing.T, whole []byte, d *Dialect) {
	var ctx map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(whole, &ctx), "%q", whole)
	var messages []json.RawMessage
	require.NoError(t, json.Unmarshal(ctx["messages"], &messages))
	for _, m := range messages {
		require.NotEqual(t, "null", string(m))
	}
	keys := map[*Dialect][]string{
		OMP:      {"messages", "thinkingLevel", "models", "injectedTtsrRules", "selectedMCPToolNames", "hasPersistedMCPToolSelection"},
		Operator: {"messages", "thinking_level"},
	}
	for _, key := range keys[d] {
		require.Contains(t, ctx, key)
	}
}

// FuzzNames: a text has one file name, by the rules of the design, and is read back from it unless it was cut.
func FuzzNames(f *testing.F) {
	for _, id := range []string{"", "a", "a/b", "..", ".", "-rf", "~", "%", "a%2Fb", "entry.json", "nul\x00", "\u0085", "\xED\xA0\xBC", "x\xff",
		strings.Repeat("h", 300), strings.Repeat("é", 101), strings.Repeat("/", 67)} {
		f.Add(id, "b")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		name := names.FileName(a)
		require.Equal(t, nameByTheBook(a), name)
		checkFileName(t, name+".json")
		require.Equal(t, a == b, name == names.FileName(b), "%q and %q", a, b)
		text, ok := names.DecodeName(name)
		require.Equal(t, !strings.Contains(name, "~"), ok, "only a cut name does not tell its id: %q", name)
		if ok {
			require.Equal(t, a, text)
		}
		// What no id is called finds none.
		if text, ok := names.DecodeName(b); ok {
			require.Equal(t, b, names.FileName(text))
		}
		checkFileName(t, names.FileNameAmong(a, []string{"entry.json"}))
	})
}

// nameByTheBook is docs/design.md section 1, Names, to the letter, independent of names.go.
func nameByTheBook(id string) string {
	if id == "" {
		return "%"
	}
	var out strings.Builder
	for i, r := range id {
		raw := id[i:min(i+utf8.RuneLen(r), len(id))]
		bad := strings.ContainsRune("/%~\x00", r) || r < 0x20 || r >= 0x7F && r <= 0x9F || i == 0 && (r == '.' || r == '-')
		if r == utf8.RuneError && !strings.HasPrefix(id[i:], "\uFFFD") {
			raw, bad = id[i:i+1], true // a byte that is no UTF-8: of a lone surrogate
		}
		if bad {
			raw = strings.ToUpper(hex.EncodeToString([]byte(raw)))
			for ; raw != ""; raw = raw[2:] {
				out.WriteString("%" + raw[:2])
			}
			continue
		}
		out.WriteString(raw)
	}
	name := out.String()
	if len(name) > 200 {
		sum := sha256.Sum256([]byte(id))
		name = name[:200] + "~" + hex.EncodeToString(sum[:])[:16]
	}
	return name
}
