package jsonl

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkChunks: how a file is cut into chunks, and by how many goroutines it is read, changes nothing.
func checkChunks(t *testing.T, data []byte) {
	units := func(chunk int64, load func(l *loader) error) (out []string) {
		l := &loader{ctx: t.Context(), obj: bytes.NewReader(data), size: int64(len(data)), chunk: chunk, emit: func(u *Unit) error {
			out = append(out, fmt.Sprintf("%d %s %d %d %d %q %v %d", u.Kind, u.Reason, u.Line, u.Off, u.Size, u.Text, u.EndsLine, u.Trailing))
			if u.Info != nil {
				out = append(out, fmt.Sprintf("%d %v %v %v %v %v %v %v", u.Info.CRC, u.Info.Type, u.Info.ID, u.Info.Parents, u.Info.Time, u.Info.Message, u.Info.Role, u.Info.Tool))
			}
			return nil
		}}
		require.NoError(t, load(l))
		return append(out, fmt.Sprint(l.resume))
	}
	start := bomLen(bytes.NewReader(data))
	want := units(ChunkSize, func(l *loader) error { return l.inline(context.Background(), start, 0) })
	require.Equal(t, want, units(1, func(l *loader) error { return l.inline(context.Background(), start, 0) }), "small chunks")
	require.Equal(t, want, units(7, func(l *loader) error { return l.pipeline(context.Background(), start, 0) }), "in parallel")
}

func FuzzChunks(f *testing.F) {
	files, err := filepath.Glob("../../../testdata/cases/*.jsonl")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(checkChunks)
}
