package clients

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestBreadcrumbs: a breadcrumb needs two lines; further lines are ignored.
func TestBreadcrumbs(t *testing.T) {
	files := memory.New()
	for text, want := range map[string]string{
		"/w\n/f.jsonl\n": "/f.jsonl", "/w\n/f.jsonl": "/f.jsonl", "/w\n/f.jsonl\nfresh\ncwdstat 1 2\n": "/f.jsonl",
		"\xEF\xBB\xBF\n /w\n/f.jsonl \t\n": "/f.jsonl", "": "", "/w": "", "/w\n": "", "\n/f.jsonl\n": "",
		"/w\n\n/f.jsonl\n": "", "/w\r\n/f.jsonl\r\n": "/f.jsonl", "/w\n/f.jsonl\r\nfresh": "/f.jsonl\r",
		"/w\n/f\x00.jsonl": "/f\x00.jsonl", strings.Repeat("x", maxBreadcrumb) + "\n/f.jsonl": "",
	} {
		require.NoError(t, files.WriteFile("t", []byte(text)))
		got, err := ReadBreadcrumb(files, "t")
		if want == "" && (err == nil || got != "") {
			require.Empty(t, got, "%.60q", text)
			continue
		}
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotFound)
		}
		require.Equal(t, want, got, "%.60q", text)
	}
}
