package filelock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSocket: names of sockets that the client was observed to bind.
func TestSocket(t *testing.T) {
	for path, want := range map[string]string{
		"":                        "dd4458733774f8b02ff557a2e70c6e06",
		"/tmp/config.yml.lock":    "71327ba360366b2a3eb5de2fa0093fa0",
		"/tmp/test.lock":          "c0b11536af4af31f2f1b828aaf87ec00",
		"/tmp/日本/config.yml.lock": "8e86d6a4347e8cc9794efc489b074c6b",
	} {
		require.Equal(t, "@omp-file-lock-"+want, Socket(path), path)
	}
}
