package view

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/markdown/markdowntest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// known counts the entries whose size in a transcript is known.
func (t *sizeCache) known() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.sizes {
		if t.sizes[i].name != 0 {
			n++
		}
	}
	return n
}

// TestTranscriptGrows: sizes are carried over, only what is new is rendered, and all agrees with a session
// that is read in one go.
func TestTranscriptGrows(t *testing.T) {
	content := sessiontest.Header + sessiontest.MessageLine(0, `{"role":"user","content":"q"}`) +
		sessiontest.MessageLine(1, asks+
			`{"type":"toolCall","id":"1","name":"a","arguments":{"x":"one"}},{"type":"toolCall","id":"2","name":"a","arguments":{"x":"two"}}]}`)
	s := newTestSession(t, content)
	before := sessiontest.Snapshot(t, s.session)
	old, _ := transcriptOf(t, before, 1, testLinks)
	require.Equal(t, 2, sizesOf(before, testLinks).known())
	for _, more := range []string{
		sessiontest.MessageLine(2, `{"role":"toolResult","toolName":"a","toolCallId":"2","content":"`+strings.Repeat("long ", 5000)+`"}`),
		sessiontest.MessageLine(3, `{"role":"toolResult","toolName":"a","toolCallId":"1","content":"1"}`),
		sessiontest.MessageLine(4, asks+`{"type":"text","text":"So."}]}`),
		// An id comes again: what hangs under it has another branch above it now, and a link another name.
		`{"type":"message","id":"e2","parentId":"e0","message":{"role":"user","content":"again"}}` + "\n",
		`{"type":"message","id":"e1","parentId":"e0","message":` + asks + `{"type":"toolCall","id":"9","name":"a","arguments":{"x":"nine"}}]}}` + "\n",
		sessiontest.MessageLine(5, `{"role":"user","content":"the end"}`),
	} {
		content += more
		s.Append(more)
		grown := sessiontest.Snapshot(t, s.session)
		require.Same(t, sizesOf(before, testLinks), sizesOf(grown, testLinks))
		known := sizesOf(grown, testLinks).known()
		whole := snapshotOf(t, content)
		for e := range sessioncore.Entry(grown.Len()) {
			checkTranscript(t, grown, e)
			want, _ := transcriptOf(t, whole, e, testLinks)
			got, _ := transcriptOf(t, grown, e, testLinks)
			require.Equal(t, string(want), string(got))
		}
		require.Equal(t, known+1, sizesOf(grown, testLinks).known())
	}
	again, _ := transcriptOf(t, before, 1, testLinks)
	require.Equal(t, string(old), string(again), "an older snapshot goes on being what it was")
}

// TestTranscriptOfOverwrittenFile: what was overwritten in place is not read as if it were the entry.
func TestTranscriptOfOverwrittenFile(t *testing.T) {
	content := sessiontest.Header + sessiontest.MessageLine(0, `{"role":"user","content":"old"}`)
	s := newTestSession(t, content)
	snap := sessiontest.Snapshot(t, s.session)
	d, err := Render(context.Background(), snap, 0, testLinks)
	require.NoError(t, err)
	defer d.Close()
	s.Write(strings.Replace(content, "old", "new", 1))
	_, err = d.ReadAt(make([]byte, d.Size()), 0)
	require.ErrorIs(t, err, storage.ErrStale)
}

// TestTranscriptsAtOnce: many readers of many snapshots share what is remembered.
func TestTranscriptsAtOnce(t *testing.T) {
	s := newTestSession(t, sessiontest.Header)
	var readers sync.WaitGroup
	for n := range 40 {
		s.Append(sessiontest.MessageLine(n, fmt.Sprintf(`{"role":"assistant","model":"m%d","content":"text %d","usage":{"input":1}}`, n%3, n)))
		readers.Go(func() {
			snap, err := s.session.Acquire(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer snap.Release()
			leaf := sessioncore.Entry(snap.Len() - 1)
			text, _ := transcriptOf(t, snap, leaf, testLinks)
			if !bytes.Contains(text, fmt.Appendf(nil, "text %d\n", leaf)) {
				t.Errorf("%d entries:\n%s", snap.Len(), text)
			}
		})
	}
	readers.Wait()
}

// hostileSession is a session whose entries are made of texts, in the shapes of testdata/shapes.txt.
func hostileSession(t *testing.T, rnd *rand.Rand, texts []string) string {
	var b strings.Builder
	b.WriteString(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-05T09:00:00Z","title":` + hostileJSON(rnd, texts) + `,"cwd":` +
		hostileJSON(rnd, texts) + "}\n")
	shapes, err := os.ReadFile("testdata/shapes.txt")
	require.NoError(t, err)
	entries := strings.Split(strings.TrimSuffix(string(shapes), "\n"), "\n")
	parent := "null"
	for n := range 2 + rnd.IntN(12) {
		id := hostileJSON(rnd, texts)
		isOrdinary := rnd.IntN(4) > 0
		if isOrdinary || id[0] != '"' {
			id = fmt.Sprintf(`"e%d"`, n)
		}
		fields := entries[rnd.IntN(len(entries))]
		for strings.Contains(fields, "%s") {
			value := strings.ReplaceAll(hostileJSON(rnd, texts), "%s", "%%") // so that the loop ends
			fields = strings.Replace(fields, "%s", value, 1)
		}
		fmt.Fprintf(&b, `{"id":%s,"parentId":%s,"timestamp":"2026-01-05T09:%02d:00Z",%s}`+"\n", id, parent, n, fields)
		parent = id
	}
	return b.String()
}

// hostileJSON is most often one of the texts as a string.
func hostileJSON(rnd *rand.Rand, texts []string) string {
	if rnd.IntN(20) == 0 {
		odd := []string{"null", "true", "12", "[]", "{}", `["x"]`, `{"type":"text","text":"x"}`, `"\ud800"`, `"\u001b[2J"`, `"\r\u009b\u202e"`}
		return odd[rnd.IntN(len(odd))]
	}
	return string(rawjson.AppendQuoted(nil, texts[rnd.IntN(len(texts))]))
}

// FuzzTranscript: whatever is said in a session, its transcript keeps its layout and has the size that is
// told; and so does whatever the file holds, which may be no session of ours.
func FuzzTranscript(f *testing.F) {
	pool := sessiontest.AddSeeds(f, func(data []byte) { f.Add(data, uint64(len(data))) })
	f.Add([]byte("# a\x00```\x00<b>\x00> - 1. x\x00[a]: b\x00\x1b[31m"), uint64(1))
	for seed := range uint64(50) {
		f.Add([]byte{}, 2*seed+1) // of nothing but hostile texts
	}
	f.Fuzz(func(t *testing.T, data []byte, mix uint64) {
		rnd := rand.New(rand.NewPCG(mix, 3))
		session := pool.Mixed(data, mix)
		if mix%2 == 1 {
			texts := []string{markdowntest.HostileText(rnd), markdowntest.HostileText(rnd), markdowntest.HostileText(rnd)}
			for _, text := range bytes.Split(data[:min(len(data), 4000)], []byte{0}) {
				texts = append(texts, string(rawjson.AppendUTF8(nil, text)))
			}
			session = []byte(hostileSession(t, rnd, texts))
		}
		snap, err := sessiontest.Acquire(t, sessionIn(t, sessiontest.Memory(t, session), sessiontest.FileName))
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession)
			return
		}
		leaf := sessiontest.Leaf(t, snap)
		checkTranscript(t, snap, leaf)
		if snap.Len() > 0 {
			other := sessioncore.Entry(rnd.IntN(snap.Len()))
			checkTranscript(t, snap, other)
			require.Empty(t, diffOf(t, ShownBranch{snap, leaf}, ShownBranch{snap, leaf}))
			diffOf(t, ShownBranch{snap, leaf}, ShownBranch{snap, other})
		}
	})
}

// versions are the files of a snapshot that can be followed, by name.
type versions map[string]*document.Document

// openVersions opens the files of a snapshot, until the end of the test.
func openVersions(t *testing.T, snap *sessioncore.Snapshot) versions {
	v := versions{}
	add := func(name string, d *document.Document, err error) {
		require.NoError(t, err)
		t.Cleanup(d.Close)
		v[name] = d
	}
	leaf := sessiontest.Leaf(t, snap)
	labels, err := report.Labels(snap)
	add("labels", labels, err)
	problems, err := report.Problems(t.Context(), snap, nil)
	add("problems", problems, err)
	transcript, err := Render(t.Context(), snap, leaf, testLinks)
	add("transcript", transcript, err)
	if leaf != sessioncore.NoEntry {
		entries, _, err := snap.Branch(leaf).EntriesDocument(t.Context())
		add("entries", entries, err)
	}
	return v
}

// textOf returns the text of a document, which must have the size that it tells.
func textOf(t *testing.T, d *document.Document) string {
	b, err := io.ReadAll(io.NewSectionReader(d, 0, d.Size()))
	require.NoError(t, err)
	require.Len(t, b, int(d.Size()))
	return string(b)
}

// changingSession is a session that is changed at random.
type changingSession struct {
	*testSession
	*testing.T
	rnd     *rand.Rand
	content string
	entries int // with the ids e0, e1 and so on
}

// change changes the session in one of the ways in which a file changes, and reports whether its branch just goes on.
func (s *changingSession) change() (goesOn bool) {
	n := s.entries
	newID := fmt.Sprint("e", n)
	kind := s.rnd.IntN(10)
	switch {
	case kind < 6:
		parent := "null"
		if n > 0 {
			parent = fmt.Sprintf(`"e%d"`, n-1)
		}
		s.add(s.message(newID, parent))
		s.entries++
		return true
	case kind == 6 && n > 1: // another branch
		parent := fmt.Sprintf(`"e%d"`, s.rnd.IntN(n))
		s.add(s.message(newID, parent))
		s.entries++
	case kind == 7 && n > 1: // an id comes again
		known := fmt.Sprint("e", s.rnd.IntN(n))
		s.add(s.message(known, `"e0"`))
	case kind == 8 && n > 0:
		const label = `{"type":"label","id":"l%d%d","parentId":"e%d","targetId":"e%d","label":"%d"}` + "\nbroken\n"
		s.add(fmt.Sprintf(label, n, len(s.content), n-1, s.rnd.IntN(n), s.rnd.IntN(3)))
	default:
		changesEntry := kind == 9 && s.rnd.IntN(2) == 0
		s.rewrite(changesEntry)
	}
	return false
}

// message returns an entry: a prompt, a call or a result, which may be long.
func (s *changingSession) message(id, parent string) string {
	output := strings.Repeat("long ", 3000*s.rnd.IntN(2))
	messages := []string{
		`{"role":"user","content":"u %d"}`,
		`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"toolCall","id":"1","name":"x","arguments":{"n":%d}}]}`,
		`{"role":"toolResult","toolCallId":"1","toolName":"x","content":"` + output + `%d"}`,
	}
	message := fmt.Sprintf(messages[s.rnd.IntN(len(messages))], s.entries)
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":%s,"message":%s}`+"\n", id, parent, message)
}

// add appends lines to the file.
func (s *changingSession) add(lines string) {
	s.content += lines
	s.Append(lines)
}

// rewrite puts the same entries into another file, or all but one the same.
func (s *changingSession) rewrite(changesEntry bool) {
	if changesEntry {
		s.content = strings.Replace(s.content, "u ", "U ", 1)
	}
	s.content = strings.Replace(s.content, `"cwd":"/w"`, `"cwd": "/w"`, 1)
	require.NoError(s, os.WriteFile(s.Path+".new", []byte(s.content), 0o644))
	require.NoError(s, os.Rename(s.Path+".new", s.Path))
}

// TestContinues: of sessions that grow, branch, repeat ids and are written anew, a version is said to continue
// another one only where it begins with it, and where a branch just goes on it is.
func TestContinues(t *testing.T) {
	const sessions, changes = 60, 12
	rnd := rand.New(rand.NewPCG(9, 5))
	continued := map[string]int{} // how often, by the names of the files
	for range sessions {
		s := &changingSession{
			testSession: newTestSession(t, sessiontest.Header),
			T:           t,
			rnd:         rnd,
			content:     sessiontest.Header,
		}
		before := sessiontest.Snapshot(t, s.session)
		earlier := []versions{openVersions(t, before)}
		for range changes {
			goesOn := s.change()
			snap := sessiontest.Snapshot(t, s.session)
			now := openVersions(t, snap)
			for _, old := range earlier {
				countContinued(t, now, old, continued)
			}
			oldLeaf := sessiontest.Leaf(t, before)
			if goesOn && oldLeaf != sessioncore.NoEntry {
				last := earlier[len(earlier)-1]
				isBelow := snap.BranchBelow(oldLeaf) == sessiontest.Leaf(t, snap)
				require.Equal(t, isBelow, now["entries"].Continues(last["entries"]))
			}
			earlier = append(earlier, now)
			before = snap
		}
	}
	const pairs = sessions * changes * (changes + 1) / 2
	require.Greater(t, continued["transcript"], 100)
	require.Less(t, continued["transcript"], pairs-100)
}

// countContinued counts the files that are said to continue an earlier version, which they must begin with.
func countContinued(t *testing.T, now, old versions, continued map[string]int) {
	t.Helper()
	for name, earlier := range old {
		newer := now[name]
		if newer != nil && newer.Continues(earlier) {
			require.True(t, strings.HasPrefix(textOf(t, newer), textOf(t, earlier)), name)
			continued[name]++
		}
	}
}

// TestBranchBelow: where a branch has got to, and which entries end one.
func TestBranchBelow(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+sessiontest.MessageLine(0, `{"role":"user","content":"a"}`)+
		sessiontest.MessageLine(1, `{"role":"user","content":"b"}`)+
		`{"type":"message","id":"x","parentId":"e0","message":{"role":"user","content":"c"}}`+"\n")
	snap := sessiontest.Snapshot(t, s.session)
	for e, below := range []sessioncore.Entry{2, 1, 2} {
		require.Equal(t, below, snap.BranchBelow(sessioncore.Entry(e)), e)
	}
	for e, endsBranch := range []bool{false, true, true} {
		require.Equal(t, endsBranch, snap.EndsBranch(sessioncore.Entry(e)), e)
	}
	s.Append(sessiontest.MoveAt(3, "m", "e0", "e0"))
	snap = sessiontest.Snapshot(t, s.session)
	for e, below := range []sessioncore.Entry{0, 1, 2} {
		require.Equal(t, below, snap.BranchBelow(sessioncore.Entry(e)), e)
	}
	require.True(t, snap.EndsBranch(0), "the leaf")
}
