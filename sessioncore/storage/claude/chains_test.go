package claude

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestHasChains: records of subagents are found wherever they are in a file, also across what is read at once.
func TestHasChains(t *testing.T) {
	for _, c := range []struct {
		record string
		want   bool
	}{
		{`{"isSidechain":true}`, true},
		{`{"isSidechain":  true}`, true},
		{`{"isSidechain":false}`, false},
		{`{"isSidechain":false,"x":true}`, false},
		{`{"isSidechain"`, false},
		{``, false},
	} {
		for at := jsonl.ChunkSize - 2*len(c.record) - 30; at < jsonl.ChunkSize+60; at++ {
			files := memory.New()
			text := strings.Repeat("x", at) + c.record + strings.Repeat("y", 100)
			require.NoError(t, files.WriteFile("f", []byte(text)))
			obj, err := files.Open("f")
			require.NoError(t, err)
			has, err := hasChains(obj, int64(len(text)))
			require.NoError(t, err)
			require.Equal(t, c.want, has, "%s at %d", c.record, at)
			require.NoError(t, obj.Close())
		}
	}
}
