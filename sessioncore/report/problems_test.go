package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// problemsOf is the text of problems.jsonl.
func problemsOf(t *testing.T, s *sessioncore.Snapshot, blobs document.Blobs) string {
	doc, err := Problems(context.Background(), s, blobs)
	require.NoError(t, err)
	return string(sessiontest.ReadExactly(t, doc, nil))
}

// TestLineOfJSON: the order of the keys, and which characters are escaped, are what readers know.
func TestLineOfJSON(t *testing.T) {
	snap := snapshotOf(t, sessiontest.MessageLine(0, `{"role":"user","content":"a"}`)+
		`{"type":"message","id":"<&\ud83c\u2028\"\u0001\u007f","parentId":"gone","message":{"role":"user","content":"b"}}`+"\n"+
		"garbage\n")
	require.Equal(t, `{"line":3,"offset":214,"bytes":112,"problem":"orphan","id":"<&\ud83c\u2028\"\u0001\u007f","why":"the entry before it is missing from the file; it is shown as the start of a branch"}
{"line":4,"offset":327,"bytes":7,"problem":"skipped","why":"not JSON"}
`, problemsOf(t, snap, nil))
}

// TestOwnFile: a line of another agent's file that is no record has its number, size and reason in that
// file. In a session of omp, such a value is one.
func TestOwnFile(t *testing.T) {
	const values = `"line 6, 60 bytes: not JSON"` + "\n" + `"line 8, 5 bytes: a JSON value that is no object"` + "\n" +
		`"line x, 5 bytes: not JSON"` + "\n" + `"line 9"` + "\n"
	message := strings.TrimSuffix(sessiontest.MessageLine(0, `{"role":"user","content":"a"}`), "\n")
	ofAgent := strings.TrimSuffix(message, "}") + `,"origin":{"line":2}}`
	problems := func(text string) (said []string) {
		for line := range strings.Lines(problemsOf(t, snapshotOf(t, text), nil)) {
			var p sessioncore.Problem
			require.NoError(t, json.Unmarshal([]byte(line), &p))
			said = append(said, fmt.Sprintf("%d %d %s %s", p.Line, p.Size, p.What, p.Why))
		}
		return said
	}
	no := "no-object a JSON value that is no object is no entry: "
	require.Equal(t, []string{
		"6 60 skipped not JSON", "8 5 no-object a JSON value that is no object", "5 27 " + no + "line x, 5 bytes: not JSON", "6 8 " + no + "line 9",
	}, problems(ofAgent+"\n"+values))
	require.Equal(t, "3 28 "+no+"line 6, 60 bytes: not JSON", problems(message + "\n" + values)[0])
}

// testBlobs has blobs of one size, all or those that are there, and counts how often they are looked at.
type testBlobs struct {
	size         int64
	there        func(hash string) bool // nil for all
	err          error
	looks, reads int
}

func (b *testBlobs) Size(hash string) (int64, error) {
	b.looks++
	if b.err == nil && b.there != nil && !b.there(hash) {
		return 0, fs.ErrNotExist
	}
	return b.size, b.err
}

func (b *testBlobs) Open(string) (storage.Object, error) {
	b.reads++
	return zeros{}, nil
}

// only leaves the blobs with these hashes.
func (b *testBlobs) only(there ...string) *testBlobs {
	b.there, b.looks = func(hash string) bool { return slices.Contains(there, hash) }, 0
	return b
}

// missingIDs are the ids of the entries that problems.jsonl says to lack a blob.
func missingIDs(t *testing.T, s *sessioncore.Snapshot, blobs document.Blobs) (ids []string) {
	t.Helper()
	for line := range strings.Lines(problemsOf(t, s, blobs)) {
		var p struct{ Problem, ID, Why string }
		require.NoError(t, json.Unmarshal([]byte(line), &p), line)
		require.Equal(t, "blob", p.Problem)
		ids = append(ids, p.ID)
	}
	return ids
}

// TestMissingBlobs: a reference to a blob that is not there is a problem, and the store is asked once for
// each blob.
func TestMissingBlobs(t *testing.T) {
	a, b, c := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	image := func(hash string) string {
		return `{"type":"image","mimeType":"image/png","data":"blob:sha256:` + hash + `"}`
	}
	s := newTestSession(t, sessiontest.Header+
		messageAt(0, "one", "", `{"role":"user","content":[`+image(a)+`,`+image(a)+`,`+image(b)+`]}`)+
		messageAt(0, "url", "", `{"role":"assistant","content":[],"x":[{"image_url" : "\u0062lob:sha256:`+b+`"}]}`)+
		messageAt(0, "text", "", `{"role":"user","content":"blob:sha256:`+c+`","data":["blob:sha256:`+c+`"],"image_url":{"url":"blob:sha256:`+c+
			`"},"other":"blob:sha256:`+c+`"}`)+
		messageAt(0, "short", "", `{"role":"user","content":[{"type":"image","data":"blob:sha256:`+c[1:]+`"},{"type":"image","data":"blob:sha256:../`+c[3:]+`"}]}`))
	blobs := (&testBlobs{}).only()
	snap := s.acquire(t)
	require.Equal(t, []string{"one", "one", "url"}, missingIDs(t, snap, blobs))
	require.Equal(t, 2, blobs.looks, "one for each blob")
	blobs.only(a)
	require.Equal(t, []string{"one", "url"}, missingIDs(t, snap, blobs))
	require.Equal(t, 2, blobs.looks)
	blobs.only(a, b)
	require.Empty(t, missingIDs(t, snap, blobs))
	require.Empty(t, missingIDs(t, snap, nil))

	s.Append(messageAt(0, "more", "", `{"role":"user","content":[`+image(c)+`]}`))
	grown := s.acquire(t)
	require.Equal(t, []string{"more"}, missingIDs(t, grown, blobs))
	require.Empty(t, missingIDs(t, snap, blobs), "a snapshot never changes")

	blobs.only()
	blobs.err = errors.New("no disk")
	text := problemsOf(t, grown, blobs)
	require.Contains(t, text, "no disk")
	require.True(t, json.Valid([]byte(text)), text)
	blobs.err = nil
	require.Len(t, missingIDs(t, grown, blobs), 4, "an error is not remembered")
}

// TestManyReferences: the references of a session that are looked after are bounded, and that is said.
func TestManyReferences(t *testing.T) {
	var text strings.Builder
	for i := range maxReferences + 2 {
		text.WriteString(messageAt(0, fmt.Sprint(i), "", fmt.Sprintf(`{"role":"user","content":[{"type":"image","data":"blob:sha256:%064x"}]}`, i)))
	}
	doc := problemsOf(t, snapshotOf(t, text.String()), (&testBlobs{}).only())
	require.Equal(t, maxReferences+1, strings.Count(doc, "\n"))
	require.Contains(t, doc, `{"problem":"more"`)
}

// zeros is a file of NULs, which JSON escapes.
type zeros struct{ storage.Object }

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}
func (zeros) Close() error { return nil }

// messageWith is the line of a message with as many of a block.
func messageWith(block string, count int) string {
	return messageAt(0, "a", "", `{"role":"user","content":[`+strings.TrimSuffix(strings.Repeat(block+",", count), ",")+`]}`)
}

// TestContextIsBounded: a small session that refers to a large blob many times makes no huge context. What does not fit
// stays a reference, problems.jsonl says so, and the blob is looked at once.
func TestContextIsBounded(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const references = 100_000
	hash := strings.Repeat("ab", 32)
	image := `{"type":"image","mimeType":"image/png","data":"` + rawjson.BlobPrefix + hash + `"}`
	url := `{"image_url":"` + rawjson.BlobPrefix + hash + `"}`
	for name, c := range map[string]struct {
		block    string
		size     int64
		resolved int64 // bytes that one reference becomes
		fit      int64
	}{
		"images":      {image, 1_000_000, 1_333_336, document.MaxResolved / 1_333_336},
		"one too big": {image, document.MaxResolved, 0, 0},
		"text":        {url, 1 << 20, 6 << 20, document.MaxInlineText / (6 << 20)}, // \u0000 for each byte
	} {
		snap := snapshotOf(t, messageWith(c.block, references))
		blobs, leaf := &testBlobs{size: c.size}, sessiontest.Leaf(t, snap)
		plain, err := snap.Context(t.Context(), leaf, nil)
		require.NoError(t, err)
		doc, err := snap.Context(t.Context(), leaf, blobs)
		require.NoError(t, err)
		reference := int64(len(rawjson.BlobPrefix) + len(hash))
		require.Equal(t, plain.Size()+c.fit*(c.resolved-reference), doc.Size(), name)
		require.Equal(t, references-int(c.fit), doc.Unresolved(), name)
		require.Equal(t, 1, blobs.looks, name)
		require.LessOrEqual(t, blobs.reads, 2+int(c.fit), name)
		require.Contains(t, problemsOf(t, snap, blobs), fmt.Sprintf("%d references stay references", doc.Unresolved()), name)
		plain.Close()
		doc.Close()
	}
	snap := snapshotOf(t, messageWith(image, 100))
	require.Empty(t, problemsOf(t, snap, &testBlobs{size: 1_000_000}), "all have room")
}

// TestUnwrittenParents: the first message of another agent's session may go on from one elsewhere, which is no problem; a
// missing parent of a later one is.
func TestUnwrittenParents(t *testing.T) {
	at := func(id, parent string, line int) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-02-16T10:20:30.000Z",`+
			`"origin":{"line":%d},"message":{"role":"user","content":"a"}}`+"\n", id, parent, line)
	}
	var found []string
	for line := range strings.Lines(problemsOf(t, snapshotOf(t, at("a", "gone", 1)+at("b", "a", 2)+at("c", "lost", 3)), nil)) {
		var p sessioncore.Problem
		require.NoError(t, json.Unmarshal([]byte(line), &p))
		found = append(found, fmt.Sprint(p.What, " ", p.ID))
	}
	require.Equal(t, []string{"unwritten c"}, found)
}
