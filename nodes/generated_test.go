package nodes

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// statedBlobs are blobs in a state.
type statedBlobs struct {
	document.Blobs
	state storage.Token
	err   error
}

func (b *statedBlobs) State() (storage.Token, error) { return b.state, b.err }

// TestSizeIsExact: the size of a file is remembered only while what it depends on, another session or the blobs, is as it was
// and would show a change.
func TestSizeIsExact(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("s.jsonl", []byte(`{"type":"session","version":3,"id":"s"}`+"\n")))
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	long := storage.Token{Changed: 1} // ago
	later := time.Now().Add(time.Hour)
	now := storage.Token{Changed: later.UnixNano()} // or so late that it is no earlier than any clock
	for name, c := range map[string]struct {
		other, otherLater storage.Token
		hasBlobs          bool
		blobs, blobsLater storage.Token
		errLater          error
		rendered          bool // once more
	}{
		"nothing else":                     {},
		"another session":                  {other: long, otherLater: long},
		"another session that has changed": {other: long, otherLater: storage.Token{Changed: 2}, rendered: true},
		"another session, changed now":     {other: now, otherLater: now, rendered: true},
		"blobs":                            {hasBlobs: true, blobs: long, blobsLater: long},
		"blobs that have changed":          {hasBlobs: true, blobs: long, blobsLater: storage.Token{Changed: 2}, rendered: true},
		"blobs that changed now":           {hasBlobs: true, blobs: now, blobsLater: now, rendered: true},
		"blobs that cannot be read":        {hasBlobs: true, blobs: long, blobsLater: long, errLater: errors.New("broken"), rendered: true},
		"blobs of which it has none":       {blobs: long, blobsLater: now},
	} {
		t.Run(name, func(t *testing.T) {
			blobs := &statedBlobs{state: c.blobs}
			dir := NewDirectory(&View{Log: slog.New(slog.DiscardHandler), Blobs: blobs})
			dir.session = store.Session("s.jsonl")
			f := &GeneratedFile{}
			text := "x"
			other := c.other
			f.init(&dir, func(_ context.Context, snap *sessioncore.Snapshot) (*document.Document, error) {
				d := document.OfText(snap, []byte(text))
				if c.hasBlobs {
					d.SetHasBlobs()
				}
				return d, nil
			})
			f.otherState = func(context.Context) (storage.Token, error) { return other, nil }
			size := func() int64 {
				a, err := f.Stat(t.Context())
				require.NoError(t, err)
				return a.Size
			}
			require.EqualValues(t, 1, size())
			other = c.otherLater
			blobs.state = c.blobsLater
			blobs.err = c.errLater
			text = "seven x"
			want := 1 // the size before, which is remembered
			if c.rendered {
				want = len(text)
			}
			require.EqualValues(t, want, size())
		})
	}
}
