package nodes

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestInterruptedListing: the listing of a caller that is gone fails. It does not leave out the sessions that could no
// longer be read: the caller may live and have a handler for the signal.
func TestInterruptedListing(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("p/s.jsonl", []byte(`{"type":"session","version":3,"id":"s"}`+"\n")))
	store := sessioncore.NewStore(files)
	defer store.Close()
	d := newSourceDir(&View{Log: slog.New(slog.DiscardHandler)}, files, store)
	d.dir = "p"
	ctx, gone := context.WithCancel(context.Background())
	gone()
	_, err := d.list(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	items, err := d.list(context.Background(), nil)
	require.NoError(t, err)
	require.Len(t, items, 2)
}
