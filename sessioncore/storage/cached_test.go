package storage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
)

// TestCached: a value is of a state only if the token is the same and was settled when the value was read.
func TestCached(t *testing.T) {
	changed := time.Unix(1_800_000_000, 1).UnixNano()
	token := storage.Token{Inode: 7, Size: 3, Modified: changed, Changed: changed}
	later := changed + int64(time.Minute)

	var none storage.Cached[string]
	require.False(t, none.IsOf(token))
	require.False(t, none.IsOf(storage.Token{}))

	settled := storage.Cached[string]{Value: "a", Token: token, ReadAt: later}
	require.True(t, settled.IsOf(token))
	grown := token
	grown.Size++
	require.False(t, settled.IsOf(grown))

	early := storage.Cached[string]{Value: "a", Token: token, ReadAt: changed} // it may change again in this tick
	require.False(t, early.IsOf(token))
}
