package search

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// BenchmarkLook searches the store in SESSIONFS_SEARCH_STORE, a directory of sessions.
func BenchmarkLook(b *testing.B) {
	dir := os.Getenv("SESSIONFS_SEARCH_STORE")
	if dir == "" {
		b.Skip("SESSIONFS_SEARCH_STORE names no directory of sessions")
	}
	files := sessiontest.OpenDir(b, dir)
	for _, text := range []string{"zanzibar", "session", "qqqq"} {
		q, err := ParseQuery(text)
		require.NoError(b, err)
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				r, err := New(Sessions{Files: files, Limit: DefaultLimit}).Search(context.Background(), q)
				require.NoError(b, err)
				b.ReportMetric(float64(len(r.Hits)), "hits")
			}
		})
		b.Run(text+", again", func(b *testing.B) {
			s := New(Sessions{Files: files, Limit: DefaultLimit})
			for b.Loop() {
				_, err := s.Search(context.Background(), q)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkTouched looks in the same store for what was done with the file in SESSIONFS_SEARCH_FILE.
func BenchmarkTouched(b *testing.B) {
	dir, file := os.Getenv("SESSIONFS_SEARCH_STORE"), os.Getenv("SESSIONFS_SEARCH_FILE")
	if dir == "" || file == "" {
		b.Skip("SESSIONFS_SEARCH_STORE or SESSIONFS_SEARCH_FILE names nothing")
	}
	m, err := NewTouched(file)
	require.NoError(b, err)
	for b.Loop() {
		r, err := New(Sessions{Files: sessiontest.OpenDir(b, dir), Limit: DefaultLimit}).Search(context.Background(), m)
		require.NoError(b, err)
		b.ReportMetric(float64(len(r.Hits)), "hits")
	}
}
