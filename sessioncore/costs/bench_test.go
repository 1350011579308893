package costs

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/listing"
)

// BenchmarkLines reads the store in the directory SESSIONFS_BENCH_STORE, and for comparison only indexes it.
func BenchmarkLines(b *testing.B) {
	root := os.Getenv("SESSIONFS_BENCH_STORE")
	if root == "" {
		b.Skip("SESSIONFS_BENCH_STORE names no directory of sessions")
	}
	store := sessioncore.NewStore(sessiontest.OpenDir(b, root))
	b.Cleanup(store.Close)
	sessions, err := listing.New(store, root).Sessions(context.Background())
	require.NoError(b, err)
	b.Run("lines", func(b *testing.B) {
		for b.Loop() {
			_, err := New(store).Lines(context.Background(), sessions.All(), nil)
			require.NoError(b, err)
		}
	})
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			for _, info := range sessions.All() {
				session := sessioncore.NewStore(store.Storage()).Session(info.Name)
				snap, err := session.Acquire(context.Background())
				require.NoError(b, err)
				snap.Release()
				session.Drop()
			}
		}
	})
}
