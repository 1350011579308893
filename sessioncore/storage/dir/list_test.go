package dir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
)

// TestListReadsAllBatches: a list has each name once, also where the names fill one or two reads of the
// directory exactly.
func TestListReadsAllBatches(t *testing.T) {
	at := t.TempDir()
	s, err := Open(at)
	require.NoError(t, err)
	made := 0
	for _, count := range []int{0, 1, listBatch - 1, listBatch, listBatch + 1, 2 * listBatch, 2*listBatch + 1} {
		for ; made < count; made++ {
			require.NoError(t, os.WriteFile(filepath.Join(at, fmt.Sprintf("%d.jsonl", made)), nil, 0o600))
		}
		listed := map[string]int{}
		require.NoError(t, s.List("", nil, func(item storage.Item) bool {
			listed[item.Name]++
			return true
		}))
		require.Len(t, listed, count)
		for name, times := range listed {
			require.Equal(t, 1, times, name)
		}
	}
}
