package sent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// blobText is the blob that the sessions in testdata refer to.
const blobText = `data:image/png;base64,AAAA "é"`

func testBlobs() (sessiontest.Blobs, string) {
	sum := sha256.Sum256([]byte(blobText))
	hash := hex.EncodeToString(sum[:])
	return sessiontest.Blobs{hash: []byte(blobText)}, hash
}

func acquire(t testing.TB, files storage.Storage, name string) *sessioncore.Snapshot {
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	return sessiontest.Snapshot(t, store.Session(name))
}

// snapshotOf returns a snapshot of a session of that project with these entries, each the child of the one before.
func snapshotOf(t testing.TB, entries ...string) *sessioncore.Snapshot {
	text := `{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/p"}` + "\n"
	parent := "null"
	for i, entry := range entries {
		id := `"` + string(rune('a'+i)) + `"`
		text += `{"id":` + id + `,"parentId":` + parent + `,"timestamp":"2026-02-16T10:20:30.000Z",` + entry + "}\n"
		parent = id
	}
	return acquire(t, sessiontest.Memory(t, []byte(text)), sessiontest.FileName)
}

func contextOf(t testing.TB, s *sessioncore.Snapshot, blobs document.Blobs) rawjson.Value {
	doc, err := Context(t.Context(), s, sessiontest.Leaf(t, s), blobs)
	require.NoError(t, err)
	return sessiontest.ReadObject(t, doc)
}

// TestRecorded compares with what omp 18.3.4 made of sessions (scripts/interop with SESSIONFS_RECORD).
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	require.NoError(t, err)
	require.Greater(t, len(files), 25)
	blobs, _ := testBlobs()
	for _, file := range files {
		recorded, err := os.ReadFile(strings.TrimSuffix(file, "l"))
		require.NoError(t, err)
		var answers map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(recorded, &answers))
		s := acquire(t, sessiontest.OpenDir(t, "testdata"), filepath.Base(file))
		for id, answer := range answers {
			e, err := s.Find(id)
			require.NoError(t, err)
			doc, err := Context(t.Context(), s, e, blobs)
			text := sessiontest.ReadExactly(t, doc, err)
			require.Equal(t, sessiontest.Canonical(rawjson.Value(answer)), sessiontest.Canonical(rawjson.Value(bytes.TrimSpace(text))), "%s at %s", file, id)
		}
	}
}

// TestNothing: before the first entry there are no messages.
func TestNothing(t *testing.T) {
	s := snapshotOf(t, `"type":"message","message":{"role":"user","content":"x"}`)
	doc, err := Context(t.Context(), s, sessioncore.NoEntry, nil)
	require.Equal(t, `{"messages":[],"thinkingLevel":"off","models":{},"injectedTtsrRules":[],"mode":"none"}`+"\n", string(sessiontest.ReadExactly(t, doc, err)))
}

// TestLong: long messages are composed, up to what a document may hold.
func TestLong(t *testing.T) {
	output := strings.Repeat("line\n", maxHeld/5/4)
	text, err := json.Marshal(output)
	require.NoError(t, err)
	run := `"type":"message","message":{"role":"bashExecution","command":"ls","output":` + string(text) + `,"exitCode":2}`
	s := snapshotOf(t, run, `"type":"message","message":{"role":"user","content":"x","attribution":"user"}`)
	var got struct {
		Messages []struct{ Content json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(contextOf(t, s, nil), &got))
	var blocks []struct{ Text string }
	require.NoError(t, json.Unmarshal(got.Messages[0].Content, &blocks))
	require.Equal(t, "Ran `ls`\n```\n"+output+"\n```\n\nCommand exited with code 2", blocks[0].Text)
	s = snapshotOf(t, run, run, run, run)
	_, err = Context(t.Context(), s, sessiontest.Leaf(t, s), nil)
	require.ErrorIs(t, err, ErrUnsupported)
}

// TestComposedBlobs: images in composed messages are resolved and not held, however large they are.
func TestComposedBlobs(t *testing.T) {
	hash := strings.Repeat("0123", 16)
	blobs := sessiontest.Blobs{hash: make([]byte, maxHeld)}
	image := `{"type":"image","data":"blob:sha256:` + hash + `","mimeType":"image/png"}`
	s := snapshotOf(t, `"type":"custom_message","customType":"x","content":[`+image+`,{"type":"text","text":"x"}]`)
	doc, err := Context(t.Context(), s, sessiontest.Leaf(t, s), blobs)
	require.NoError(t, err)
	require.Less(t, doc.Memory(), int64(4<<10))
	text := sessiontest.ReadObject(t, doc)
	require.Greater(t, len(text), maxHeld*4/3)
	require.NotContains(t, string(text), "blob:")
	require.Equal(t, 1, strings.Count(string(contextOf(t, s, nil)), "blob:sha256:"+hash))
}

// TestCopiedBlob: a blob that is copied into the text, as JSON escapes some of it, is shown. So in the other context.
func TestCopiedBlob(t *testing.T) {
	blobs, hash := testBlobs()
	s := snapshotOf(t, `"type":"message","message":{"role":"user","attribution":"user","content":[],"x":{"image_url":"blob:sha256:`+hash+`"}}`)
	for _, render := range []func(context.Context, *sessioncore.Snapshot, sessioncore.Entry, document.Blobs) (*document.Document, error){
		Context,
		func(ctx context.Context, s *sessioncore.Snapshot, e sessioncore.Entry, blobs document.Blobs) (*document.Document, error) {
			return s.Context(ctx, e, blobs)
		},
	} {
		doc, err := render(t.Context(), s, sessiontest.Leaf(t, s), blobs)
		require.NoError(t, err)
		require.Contains(t, string(sessiontest.ReadObject(t, doc)), `AAAA \"é\"`)
	}
}

// TestNested: content that is nested very deeply is passed on as it is.
func TestNested(t *testing.T) {
	_, hash := testBlobs()
	deep := strings.Repeat(`{"content":[`, 20_000) + `"blob:sha256:` + hash + `"` + strings.Repeat(`]}`, 20_000)
	blobs, _ := testBlobs()
	s := snapshotOf(t, `"type":"message","message":{"role":"user","attribution":"user","content":[`+deep+`]}`)
	require.Contains(t, string(contextOf(t, s, blobs)), deep)
}

// TestUnsupported: what cannot be composed as the client does is refused, and says so.
func TestUnsupported(t *testing.T) {
	s := snapshotOf(t, `"type":"message","message":{"role":"bashExecution","command":"x","output":"y","meta":{"diagnostics":{"summary":"s","messages":["m"]}}}`)
	_, err := Context(t.Context(), s, sessiontest.Leaf(t, s), nil)
	require.ErrorIs(t, err, ErrUnsupported)
}

// TestInterrupted: a reader that is gone ends the work.
func TestInterrupted(t *testing.T) {
	s := snapshotOf(t, `"type":"message","message":{"role":"user","content":"x"}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Context(ctx, s, sessiontest.Leaf(t, s), nil)
	require.ErrorIs(t, err, context.Canceled)
}

// TestUnruly: what makes the client fail is sent as far as it goes.
func TestUnruly(t *testing.T) {
	for _, entry := range []string{
		`"type":"message"`, `"type":"message","message":null`, `"type":"message","message":7`, `"type":"message","message":{"role":"assistant"}`,
		`"type":"message","message":{"role":"assistant","content":"x","stopReason":"error"}`,
		`"type":"message","message":{"role":"assistant","content":[null,7,{"type":"toolCall"}],"stopReason":"aborted"}`,
		`"type":"message","message":{"role":"toolResult"}`, `"type":"message","message":{"role":"fileMention"}`, `"type":"message","message":{"role":7}`,
		`"type":"message","message":{"role":"user","steering":true}`, `"type":"compaction"`, `"type":"compaction","preserveData":{"snapcompact":[]}`,
		`"type":"ttsr_injection","injectedRules":"abc"`, `"type":"mode_change"`, `"type":"service_tier_change"`, `"type":"model_change","model":"m","role":"__proto__"`,
	} {
		s := snapshotOf(t, entry, `"type":"message","message":{"role":"user","content":"after"}`)
		require.Contains(t, string(contextOf(t, s, nil)), `"after"`, entry)
	}
}

// TestRawSummary: beside blocks a summary is what the client has, whatever that is.
func TestRawSummary(t *testing.T) {
	for summary, block := range map[string]string{``: `{"type":"text"}`, `"summary":null,`: `{"type":"text","text":null}`, `"summary":7,`: `{"type":"text","text":7}`} {
		for _, entry := range []string{
			`"type":"compaction",` + summary + `"preserveData":{"snapcompact":{"frames":[],"textHead":"old"}}`,
			`"type":"message","message":{"role":"compactionSummary",` + summary + `"blocks":[]}`,
		} {
			require.Contains(t, string(contextOf(t, snapshotOf(t, entry), nil)), `"content":[`+block, entry)
		}
	}
}

// TestTime: an entry's message has the time that the client's new Date(timestamp).getTime() gives, null for NaN.
func TestTime(t *testing.T) {
	for timestamp, ms := range map[string]string{
		`null`: "0", `true`: "1", `false`: "0", `-1.9`: "-1", `8.64e15`: "8640000000000000", `8640000000000001`: "null", `"never"`: "null", `{}`: "null",
		`[]`: "null", `[null]`: "null", `[true]`: "null", `[[]]`: "null", strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19): "null", `[1771237230000]`: "null", `[2026]`: "1767225600000", `["2026"]`: "1767225600000",
		`["2026-02-16T10:20:30.000Z"]`: "1771237230000", `[["2026-02-16"]]`: "1771200000000", `"2026-02-16T11:20:30+01:00"`: "1771237230000",
	} {
		at := `"timestamp":` + timestamp
		for _, entry := range []string{`"type":"custom_message","content":"x",` + at, `"type":"compaction","summary":"s",` + at} {
			s := snapshotOf(t, entry)
			require.Contains(t, string(contextOf(t, s, nil)), `"timestamp":`+ms+`}`, entry)
			stored, err := s.Context(t.Context(), sessiontest.Leaf(t, s), nil)
			require.NoError(t, err)
			require.Contains(t, string(sessiontest.ReadObject(t, stored)), `"timestamp":`+ms+`}`, entry)
		}
	}
	require.Contains(t, string(contextOf(t, snapshotOf(t, `"type":"branch_summary","summary":"s","timestamp":null`), nil)), `"historyRewriteAt":0,"timestamp":0}`)
}

// FuzzSent: of any file a context is one JSON object, of the size that is told.
func FuzzSent(f *testing.F) {
	blobs, hash := testBlobs()
	files, err := filepath.Glob("testdata/*.jsonl")
	require.NoError(f, err)
	for _, file := range files[:min(len(files), 12)] {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"type":"session","id":"s"}` + "\n" + `{"type":"message","id":"a","message":{"role":"custom","content":[{"type":"image","data":"blob:sha256:` + hash + `"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		store := sessioncore.NewStore(sessiontest.Memory(t, data))
		defer store.Close()
		s, err := store.Session(sessiontest.FileName).Acquire(t.Context())
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession)
			return
		}
		defer s.Release()
		leaf := sessiontest.Leaf(t, s)
		doc, err := Context(t.Context(), s, leaf, blobs)
		if err != nil {
			require.ErrorIs(t, err, ErrUnsupported)
			return
		}
		text := sessiontest.ReadObject(t, doc)
		require.NotContains(t, string(text), marker)
	})
}

// TestSizes: as the client writes them.
func TestSizes(t *testing.T) {
	for size, want := range map[float64]string{0: "0B", 1023: "1023B", 1536: "1.5KB", 1<<20 - 1: "1024.0KB", 3 << 20: "3.0MB", 5 << 40: "5120.0GB"} {
		require.Equal(t, want, sizeText(size))
	}
}
