package storage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSettling: a token may hide a further change for a tick after its time, for two seconds where the file system has whole ones.
func TestSettling(t *testing.T) {
	second := time.Unix(1_700_000_000, 0)
	fine := second.Add(123456789)
	for _, c := range []struct {
		name    string
		changed time.Time
		age     time.Duration
		want    time.Duration
	}{
		{"just changed", fine, 0, clockTick},
		{"within a tick", fine, clockTick / 4, clockTick * 3 / 4},
		{"a tick later", fine, clockTick, 0},
		{"long ago", fine, time.Hour, 0},
		{"a clock that is ahead", fine, -time.Hour, clockTick},
		{"whole seconds", second, clockTick, coarseTick - clockTick},
		{"whole seconds, two later", second, coarseTick, 0},
	} {
		token := Token{Changed: c.changed.UnixNano()}
		at := c.changed.Add(c.age)
		require.Equal(t, c.want, token.Settling(at), c.name)
		require.Equal(t, c.want > 0, token.Racy(at.UnixNano()), c.name)
	}
}
