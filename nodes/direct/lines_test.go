package direct

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWriteInputPanics: the reader of the input may panic without an end of the process.
func TestWriteInputPanics(t *testing.T) {
	require.ErrorContains(t, (*File)(nil).feed(t.Context(), nil, nil), "a bug")
}
