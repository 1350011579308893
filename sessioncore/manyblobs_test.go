package sessioncore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

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
func sessionWith(t *testing.T, block string, count int) *Snapshot {
	files := memory.New()
	blocks := strings.TrimSuffix(strings.Repeat(block+",", count), ",")
	require.NoError(t, files.WriteFile("s.jsonl", []byte(`{"type":"session","version":3,"id":"s","cwd":"/"}`+"\n"+
		`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":[`+blocks+`]}}`+"\n")))
	store := NewStore(files)
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
			problems := string(wholeDocument(t, snap.ProblemsDocument(t.Context(), blobs)))
			require.Contains(t, problems, fmt.Sprintf("%d references stay references", doc.Unresolved()))
		})
	}
	snap := sessionWith(t, image, 100)
	require.Empty(t, wholeDocument(t, snap.ProblemsDocument(t.Context(), &largeBlobs{size: 1_000_000})), "all have room")
}
