package transcript

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/markdown/markdowntest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// known counts the entries whose size in a transcript is known.
func (t *sizeCache) known() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.sizes {
		if t.sizes[i].flags&partKnown != 0 {
			n++
		}
	}
	return n
}

// TestTranscriptGrows: sizes are carried over, only what is new is rendered, and all agrees with a session
// that is read in one go.
func TestTranscriptGrows(t *testing.T) {
	content := sessiontest.Header + sessiontest.MessageLine(0, `{"role":"user","content":"q"}`) +
		sessiontest.MessageLine(1, asks+`{"type":"toolCall","id":"1","name":"a","arguments":{"x":"one"}},{"type":"toolCall","id":"2","name":"a","arguments":{"x":"two"}}]}`)
	s := newTestSession(t, content)
	before, err := s.session.Acquire(context.Background())
	require.NoError(t, err)
	defer before.Release()
	old, _ := transcriptOf(t, before, 1, testLinks)
	require.Equal(t, 2, sizesOf(before).known())
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
		grown, err := s.session.Acquire(context.Background())
		require.NoError(t, err)
		require.Same(t, sizesOf(before), sizesOf(grown))
		known := sizesOf(grown).known()
		for e := range sessioncore.Entry(grown.Len()) {
			checkTranscript(t, grown, e)
		}
		require.Equal(t, known+1, sizesOf(grown).known())
		whole := newTestSession(t, content)
		fresh, err := whole.session.Acquire(context.Background())
		require.NoError(t, err)
		for e := range sessioncore.Entry(grown.Len()) {
			want, _ := transcriptOf(t, fresh, e, testLinks)
			got, _ := transcriptOf(t, grown, e, testLinks)
			require.Equal(t, string(want), string(got))
		}
		fresh.Release()
		grown.Release()
	}
	again, _ := transcriptOf(t, before, 1, testLinks)
	require.Equal(t, string(old), string(again), "an older snapshot goes on being what it was")
}

// TestTranscriptOfOverwrittenFile: what was overwritten in place is not read as if it were the entry.
func TestTranscriptOfOverwrittenFile(t *testing.T) {
	content := sessiontest.Header + sessiontest.MessageLine(0, `{"role":"user","content":"old"}`)
	s := newTestSession(t, content)
	snap, err := s.session.Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
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

// hostileSession is a session whose messages are made of texts, in all shapes.
func hostileSession(rnd *rand.Rand, texts []string) string {
	var b strings.Builder
	b.WriteString(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-05T09:00:00Z","title":` + hostileJSON(rnd, texts) + `,"cwd":` + hostileJSON(rnd, texts) + "}\n")
	shapes := []string{
		`{"role":"user","content":%s}`, `{"role":"user","content":[{"type":"text","text":%s},{"type":"text","text":%s},{"type":"image","data":%s,"mimeType":%s}]}`,
		`{"role":"assistant","provider":%s,"model":%s,"content":[{"type":"thinking","thinking":%s},{"type":"text","text":%s},{"type":"toolCall","id":"1","name":%s,"intent":%s,"arguments":{"command":%s}},{"type":"toolCall","id":"2","name":"x","arguments":{"a":%s,"b":[%s,1,{"c":%s}]}}],"stopReason":%s,"errorMessage":%s}`,
		`{"role":"assistant","content":%s}`, `{"role":"assistant","content":[{"type":"text","text":%s}]}`,
		`{"role":"toolResult","toolName":%s,"toolCallId":"2","content":[{"type":"text","text":%s}],"isError":%s}`,
		`{"role":"custom","customType":%s,"content":%s}`, `{"role":"bashExecution","command":%s,"output":%s,"exitCode":%s}`,
		`{"role":"fileMention","files":[{"path":%s,"content":%s}]}`, `{"role":"compactionSummary","summary":%s}`, `{"role":%s,"content":%s}`, `%s`,
	}
	entries := []string{
		`"type":"compaction","summary":%s,"tokensBefore":5`, `"type":"branch_summary","fromId":%s,"summary":%s`, `"type":"model_change","model":%s`,
		`"type":"label","targetId":"e0","label":%s`, `"type":"title_change","title":%s`, `"type":%s`, `"type":"mcp_tool_selection","selectedToolNames":[%s,%s]`,
	}
	parent := "null"
	for n := range 2 + rnd.IntN(12) {
		id := hostileJSON(rnd, texts)
		if rnd.IntN(4) > 0 || id[0] != '"' {
			id = fmt.Sprintf(`"e%d"`, n)
		}
		fields := `"type":"message","message":` + shapes[rnd.IntN(len(shapes))]
		if rnd.IntN(4) == 0 {
			fields = entries[rnd.IntN(len(entries))]
		}
		for strings.Contains(fields, "%s") {
			fields = strings.Replace(fields, "%s", strings.ReplaceAll(hostileJSON(rnd, texts), "%s", "%%"), 1)
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
	f.Fuzz(func(t *testing.T, data []byte, mix uint64) {
		rnd := rand.New(rand.NewPCG(mix, 3))
		session := pool.Mixed(data, mix)
		if mix%2 == 1 {
			texts := []string{markdowntest.HostileText(rnd), markdowntest.HostileText(rnd), markdowntest.HostileText(rnd)}
			for _, text := range bytes.Split(data[:min(len(data), 4000)], []byte{0}) {
				texts = append(texts, string(rawjson.AppendUTF8(nil, text)))
			}
			session = []byte(hostileSession(rnd, texts))
		}
		s := fuzzSession(t, session)
		snap, err := s.Acquire(context.Background())
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession)
			return
		}
		defer snap.Release()
		leaf := sessiontest.Leaf(t, snap)
		checkTranscript(t, snap, leaf)
		if snap.Len() > 0 {
			checkTranscript(t, snap, sessioncore.Entry(rnd.IntN(snap.Len())))
		}
	})
}

func TestHostileTranscripts(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		texts := []string{markdowntest.HostileText(rnd), markdowntest.HostileText(rnd), markdowntest.HostileText(rnd), markdowntest.HostileText(rnd)}
		s := fuzzSession(t, []byte(hostileSession(rnd, texts)))
		snap, err := s.Acquire(context.Background())
		require.NoError(t, err)
		checkTranscript(t, snap, sessiontest.Leaf(t, snap))
		snap.Release()
	}
}
