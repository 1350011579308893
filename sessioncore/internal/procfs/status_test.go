package procfs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestField(t *testing.T) {
	const status = "Name:\tNSpid: 7\nPid:\t12\nNSpid:\t12\t1\nlast: 3"
	require.Equal(t, "12\t1", Field(status, "NSpid"))
	require.Equal(t, "NSpid: 7", Field(status, "Name"))
	require.Equal(t, "3", Field(status, "last"))
	require.Empty(t, Field(status, "pid"))
	require.Empty(t, Field("", "Pid"))
}

func TestStatField(t *testing.T) {
	const stat = "12 (a) R 1 (b)) S 1 12 12 34816 -1"
	require.Equal(t, "S", StatField(stat, 0))
	require.Equal(t, "34816", StatField(stat, Terminal))
	require.Empty(t, StatField(stat, Start))
	require.Empty(t, StatField("", 0))
}
