package sessioncore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

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
func missingIDs(t *testing.T, s *Snapshot, blobs document.Blobs) (ids []string) {
	t.Helper()
	for line := range strings.Lines(string(wholeDocument(t, s.ProblemsDocument(context.Background(), blobs)))) {
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
	store := NewStore(files)
	defer store.Close()
	acquire := func() *Snapshot {
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
	text := string(wholeDocument(t, grown.ProblemsDocument(context.Background(), blobs)))
	require.Contains(t, text, "no disk")
	require.True(t, json.Valid([]byte(text)), text)
	blobs.err = nil
	require.Len(t, missingIDs(t, grown, blobs), 4, "an error is not remembered")
}

// TestManyBlobUses: the references of a session that are looked after are bounded, and that is said.
func TestManyBlobUses(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/"}` + "\n")
	for i := range maxBlobUses + 2 {
		text.WriteString(blobLine(fmt.Sprint(i), fmt.Sprintf(`{"role":"user","content":[{"type":"image","data":"blob:sha256:%064x"}]}`, i)))
	}
	files := memory.New()
	require.NoError(t, files.WriteFile("p/s.jsonl", []byte(text.String())))
	store := NewStore(files)
	defer store.Close()
	snap, err := store.Session("p/s.jsonl").Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	doc := string(wholeDocument(t, snap.ProblemsDocument(context.Background(), &countingBlobs{})))
	require.Equal(t, maxBlobUses+1, strings.Count(doc, "\n"))
	require.Contains(t, doc, `{"problem":"more"`)
}
