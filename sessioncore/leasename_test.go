package sessioncore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsLeaseName(t *testing.T) {
	for id, want := range map[string]bool{
		"1f9d2a6b9c0d1234": true, "a_B-9": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a.b": false, "../x": false, "a/b": false, "é": false, "a\n": false,
	} {
		require.Equal(t, want, isLeaseName(id), "%q", id)
	}
}
