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
	snap := snapshotOf(t, sessiontest.Header+sessiontest.MessageLine(0, `{"role":"user","content":"a"}`)+
		`{"type":"message","id":"<&\ud83c\u2028\"\u0001\u007f","parentId":"gone","message":{"role":"user","content":"b"}}`+"\n"+
		"garbage\n")
	require.Equal(t, `{"line":3,"offset":214,"bytes":112,"problem":"orphan","id":"<&\ud83c`+"\u2028"+`\"\u0001`+"\x7f"+
		`","why":"its parent is not in the file: it counts as a root"}
{"line":4,"offset":327,"bytes":7,"problem":"skipped","why":"not JSON"}
`, problemsOf(t, snap, nil))
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
	return zeros{size: b.size}, nil
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

func blobLine(id, message string) string {
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z","message":%s}`+"\n", id, message)
}

// TestMissingBlobs: a reference to a blob that is not there is a problem, and the store is asked once for
// each blob.
func TestMissingBlobs(t *testing.T) {
	a, b, c := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	image := func(hash string) string {
		return `{"type":"image","mimeType":"image/png","data":"blob:sha256:` + hash + `"}`
	}
	s := newTestSession(t, sessiontest.Header+
		blobLine("one", `{"role":"user","content":[`+image(a)+`,`+image(a)+`,`+image(b)+`]}`)+
		blobLine("url", `{"role":"assistant","content":[],"x":[{"image_url" : "\u0062lob:sha256:`+b+`"}]}`)+
		blobLine("text", `{"role":"user","content":"blob:sha256:`+c+`","data":["blob:sha256:`+c+`"],"image_url":{"url":"blob:sha256:`+c+
			`"},"other":"blob:sha256:`+c+`"}`)+
		blobLine("short", `{"role":"user","content":[{"type":"image","data":"blob:sha256:`+c[1:]+`"},{"type":"image","data":"blob:sha256:../`+c[3:]+`"}]}`))
	acquire := func() *sessioncore.Snapshot {
		return sessiontest.Snapshot(t, s.session)
	}
	blobs := (&testBlobs{}).only()
	snap := acquire()
	require.Equal(t, []string{"one", "one", "url"}, missingIDs(t, snap, blobs))
	require.Equal(t, 2, blobs.looks, "one for each blob")
	blobs.only(a)
	require.Equal(t, []string{"one", "url"}, missingIDs(t, snap, blobs))
	require.Equal(t, 2, blobs.looks)
	blobs.only(a, b)
	require.Empty(t, missingIDs(t, snap, blobs))
	require.Empty(t, missingIDs(t, snap, nil))

	s.Append(blobLine("more", `{"role":"user","content":[`+image(c)+`]}`))
	grown := acquire()
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
	text.WriteString(sessiontest.Header)
	for i := range maxReferences + 2 {
		text.WriteString(blobLine(fmt.Sprint(i), fmt.Sprintf(`{"role":"user","content":[{"type":"image","data":"blob:sha256:%064x"}]}`, i)))
	}
	doc := problemsOf(t, snapshotOf(t, text.String()), (&testBlobs{}).only())
	require.Equal(t, maxReferences+1, strings.Count(doc, "\n"))
	require.Contains(t, doc, `{"problem":"more"`)
}

// zeros is a file of NULs, which JSON escapes.
type zeros struct{ size int64 }

func (z zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}
func (z zeros) Stat() (storage.Stat, error) { return storage.Stat{}, nil }
func (z zeros) Close() error                { return nil }

// messageWith is the line of a message with as many of a block.
func messageWith(block string, count int) string {
	return blobLine("a", `{"role":"user","content":[`+strings.TrimSuffix(strings.Repeat(block+",", count), ",")+`]}`)
}

// TestContextIsBounded: a small session that refers to a large blob many times makes no huge context. What does not fit
// stays a reference, problems.jsonl says so, and the blob is looked at once.
func TestContextIsBounded(t *testing.T) {
	if sessiontest.UnderRace {
		t.Skip("one goroutine, and much text")
	}
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
		t.Run(name, func(t *testing.T) {
			snap := snapshotOf(t, sessiontest.Header+messageWith(c.block, references))
			blobs := &testBlobs{size: c.size}
			leaf := sessiontest.Leaf(t, snap)
			plain, err := snap.Context(t.Context(), leaf, nil)
			require.NoError(t, err)
			defer plain.Close()
			doc, err := snap.Context(t.Context(), leaf, blobs)
			require.NoError(t, err)
			defer doc.Close()
			reference := int64(len(rawjson.BlobPrefix) + len(hash))
			require.Equal(t, plain.Size()+c.fit*(c.resolved-reference), doc.Size())
			require.Equal(t, references-int(c.fit), doc.Unresolved())
			require.Equal(t, 1, blobs.looks)
			require.LessOrEqual(t, blobs.reads, 2+int(c.fit))
			problems := problemsOf(t, snap, blobs)
			require.Contains(t, problems, fmt.Sprintf("%d references stay references", doc.Unresolved()))
		})
	}
	snap := snapshotOf(t, sessiontest.Header+messageWith(image, 100))
	require.Empty(t, problemsOf(t, snap, &testBlobs{size: 1_000_000}), "all have room")
}
