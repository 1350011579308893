package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkScan searches 25 MB of what sessions are mostly made of, program text in results of tools.
func BenchmarkScan(b *testing.B) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(b, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", "*", "*.go"))
	require.NoError(b, err)
	var session bytes.Buffer
	for session.Len() < 25<<20 {
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(b, err)
			for len(text) > 0 {
				part := text[:min(len(text), 20_000)]
				text = text[len(part):]
				line, _ := json.Marshal(map[string]any{"type": "message", "id": "0123abcd", "message": map[string]any{
					"role": "toolResult", "content": []any{map[string]string{"type": "text", "text": string(part)}},
				}})
				session.Write(append(line, '\n'))
			}
		}
	}
	b.SetBytes(int64(session.Len()))
	b.ReportAllocs()
	for b.Loop() {
		s := &Scan{}
		require.NoError(b, s.Extend(context.Background(), bytes.NewReader(session.Bytes()), int64(session.Len())))
		b.ReportMetric(float64(len(s.Places)), "places")
	}
}
