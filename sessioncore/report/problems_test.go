package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// problemsOf is the text of problems.jsonl.
func problemsOf(t *testing.T, s *sessioncore.Snapshot, blobs document.Blobs) string {
	doc, err := Problems(context.Background(), s, blobs)
	require.NoError(t, err)
	return string(sessiontest.ReadExactly(t, doc, nil))
}

// TestLineOfJSON: the order of the keys, and which characters are escaped, are what readers know.
func TestLineOfJSON(t *testing.T) {
	s := newTestSession(t, sessiontest.Header+sessiontest.MessageLine(0, `{"role":"user","content":"a"}`)+
		`{"type":"message","id":"<&\ud83c\u2028\"\u0001\u007f","parentId":"gone","message":{"role":"user","content":"b"}}`+"\n"+
		"garbage\n")
	snap, err := s.session.Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	require.Equal(t, `{"line":3,"offset":214,"bytes":112,"problem":"orphan","id":"<&\ud83c`+"\u2028"+`\"\u0001`+"\x7f"+`","why":"its parent is not in the file: it counts as a root"}
{"line":4,"offset":327,"bytes":7,"problem":"skipped","why":"not JSON"}
`, problemsOf(t, snap, nil))
}

// countingBlobs is a store of blobs that counts the looks.
type countingBlobs struct {
	document.Blobs
	there map[string]bool
	err   error
	looks int
}

func (b *countingBlobs) Size(hash string) (int64, error) {
	b.looks++
	if b.err != nil {
		return 0, b.err
	}
	if !b.there[hash] {
		return 0, fs.ErrNotExist
	}
	return 1, nil
}

func (b *countingBlobs) change(there ...string) {
	b.there = map[string]bool{}
	for _, h := range there {
		b.there[h] = true
	}
	b.looks = 0
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
	files := memory.New()
	require.NoError(t, files.WriteFile("p/s.jsonl", []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/"}`+"\n"+
		blobLine("one", `{"role":"user","content":[`+image(a)+`,`+image(a)+`,`+image(b)+`]}`)+
		blobLine("url", `{"role":"assistant","content":[],"x":[{"image_url" : "\u0062lob:sha256:`+b+`"}]}`)+
		blobLine("text", `{"role":"user","content":"blob:sha256:`+c+`","data":["blob:sha256:`+c+`"],"image_url":{"url":"blob:sha256:`+c+`"},"other":"blob:sha256:`+c+`"}`)+
		blobLine("short", `{"role":"user","content":[{"type":"image","data":"blob:sha256:`+c[1:]+`"},{"type":"image","data":"blob:sha256:../`+c[3:]+`"}]}`))))
	store := sessioncore.NewStore(files)
	defer store.Close()
	acquire := func() *sessioncore.Snapshot {
		snap, err := store.Session("p/s.jsonl").Acquire(context.Background())
		require.NoError(t, err)
		t.Cleanup(snap.Release)
		return snap
	}
	blobs := &countingBlobs{}
	snap := acquire()
	require.Equal(t, []string{"one", "one", "url"}, missingIDs(t, snap, blobs))
	require.Equal(t, 2, blobs.looks, "one for each blob")
	blobs.change(a)
	require.Equal(t, []string{"one", "url"}, missingIDs(t, snap, blobs))
	require.Equal(t, 2, blobs.looks)
	blobs.change(a, b)
	require.Empty(t, missingIDs(t, snap, blobs))
	require.Empty(t, missingIDs(t, snap, nil))

	_, err := files.Append("p/s.jsonl", []byte(blobLine("more", `{"role":"user","content":[`+image(c)+`]}`)))
	require.NoError(t, err)
	grown := acquire()
	require.Equal(t, []string{"more"}, missingIDs(t, grown, blobs))
	require.Empty(t, missingIDs(t, snap, blobs), "a snapshot never changes")

	blobs.change()
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
	text.WriteString(`{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/"}` + "\n")
	for i := range maxReferences + 2 {
		text.WriteString(blobLine(fmt.Sprint(i), fmt.Sprintf(`{"role":"user","content":[{"type":"image","data":"blob:sha256:%064x"}]}`, i)))
	}
	files := memory.New()
	require.NoError(t, files.WriteFile("p/s.jsonl", []byte(text.String())))
	store := sessioncore.NewStore(files)
	defer store.Close()
	snap, err := store.Session("p/s.jsonl").Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	doc := problemsOf(t, snap, &countingBlobs{})
	require.Equal(t, maxReferences+1, strings.Count(doc, "\n"))
	require.Contains(t, doc, `{"problem":"more"`)
}

// largeBlobs has blobs of any hash and of one size, which count how often they are looked at.
type largeBlobs struct {
	size  int64
	looks int
	reads int
}

func (b *largeBlobs) Size(string) (int64, error) {
	b.looks++
	return b.size, nil
}

func (b *largeBlobs) Open(string) (storage.Object, error) {
	b.reads++
	return zeros{size: b.size}, nil
}

// zeros is a file of NULs, which JSON escapes.
type zeros struct{ size int64 }

func (z zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}
func (z zeros) Stat() (storage.Stat, error) { return storage.Stat{}, nil }
func (z zeros) Close() error                { return nil }

// sessionWith returns a session of one message with these blocks.
func sessionWith(t *testing.T, block string, count int) *sessioncore.Snapshot {
	files := memory.New()
	blocks := strings.TrimSuffix(strings.Repeat(block+",", count), ",")
	require.NoError(t, files.WriteFile("s.jsonl", []byte(`{"type":"session","version":3,"id":"s","cwd":"/"}`+"\n"+
		`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":[`+blocks+`]}}`+"\n")))
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	snap, err := store.Session("s.jsonl").Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(snap.Release)
	return snap
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
			snap := sessionWith(t, c.block, references)
			blobs := &largeBlobs{size: c.size}
			leaf, err := snap.Leaf()
			require.NoError(t, err)
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
	snap := sessionWith(t, image, 100)
	require.Empty(t, problemsOf(t, snap, &largeBlobs{size: 1_000_000}), "all have room")
}
