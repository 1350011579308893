//go:build linux

package dir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
)

// TestHeldDirectoryIsLookedAt: a cached directory is not used if its name now refers to another one.
func TestHeldDirectoryIsLookedAt(t *testing.T) {
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "x.jsonl"), []byte("outside"), 0o600))
	for what, change := range map[string]func(t *testing.T, folder string) int64{ // returns the size to be seen, -1 for none
		"removed": func(t *testing.T, folder string) int64 {
			require.NoError(t, os.RemoveAll(folder))
			return -1
		},
		"moved away": func(t *testing.T, folder string) int64 {
			require.NoError(t, os.Rename(folder, folder+"-moved"))
			return -1
		},
		"replaced": func(t *testing.T, folder string) int64 {
			require.NoError(t, os.Rename(folder, folder+"-moved"))
			require.NoError(t, os.Mkdir(folder, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "x.jsonl"), []byte("another"), 0o600))
			return 7
		},
		"removed and made again": func(t *testing.T, folder string) int64 {
			require.NoError(t, os.RemoveAll(folder))
			require.NoError(t, os.Mkdir(folder, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "x.jsonl"), []byte("again"), 0o600))
			return 5
		},
		"exchanged for a link to itself": func(t *testing.T, folder string) int64 {
			require.NoError(t, os.Rename(folder, folder+"-moved"))
			require.NoError(t, os.Symlink(folder+"-moved", folder))
			return -1
		},
		"exchanged for a link that leads out": func(t *testing.T, folder string) int64 {
			require.NoError(t, os.Rename(folder, folder+"-moved"))
			require.NoError(t, os.Symlink(outside, folder))
			return -1
		},
		"exchanged for a file": func(t *testing.T, folder string) int64 {
			require.NoError(t, os.RemoveAll(folder))
			require.NoError(t, os.WriteFile(folder, nil, 0o600))
			return -1
		},
	} {
		t.Run(what, func(t *testing.T) {
			root := t.TempDir()
			s, err := Open(root)
			require.NoError(t, err)
			defer s.Close()
			folder := filepath.Join(root, "scope")
			require.NoError(t, os.Mkdir(folder, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "x.jsonl"), []byte("one"), 0o600))
			st, err := s.Stat("scope/x.jsonl")
			require.NoError(t, err)
			require.Equal(t, int64(3), st.Size)

			want := change(t, folder)
			for range 2 {
				for op, do := range map[string]func() (storage.Stat, error){
					"Stat":   func() (storage.Stat, error) { return s.Stat("scope/x.jsonl") },
					"Append": func() (storage.Stat, error) { return s.Append("scope/x.jsonl", nil) },
				} {
					st, err := do()
					if want < 0 {
						assert.ErrorIs(t, err, fs.ErrNotExist, op)
					} else if assert.NoError(t, err, op) {
						assert.Equal(t, want, st.Size, op)
					}
				}
			}
		})
	}
}

// TestHeldDirectoriesAreFew: few directories stay open, however many are used, also concurrently.
func TestHeldDirectoriesAreFew(t *testing.T) {
	root := t.TempDir()
	s, err := Open(root)
	require.NoError(t, err)
	before := descriptors(t)
	for i := range 2 * maxHeldDirs {
		folder := filepath.Join(root, fmt.Sprint(i))
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "x.jsonl"), make([]byte, i), 0o600))
	}
	var wg sync.WaitGroup
	for start := range 4 {
		wg.Go(func() {
			for i := range 2_000 {
				n := (start*17 + i*7) % (2 * maxHeldDirs)
				st, err := s.Stat(fmt.Sprintf("%d/x.jsonl", n))
				if !assert.NoError(t, err) || !assert.Equal(t, int64(n), st.Size) {
					return
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, before+maxHeldDirs, descriptors(t))
	require.NoError(t, s.Close())
	assert.Equal(t, before-1, descriptors(t), "the root is closed too")
}
