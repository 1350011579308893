package clients

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// FuzzBreadcrumb: what a breadcrumb names is a line of it, the second one; whatever it is, it is compared with sessions
// without more ado, and a path that ends as the session's does is the session's.
func FuzzBreadcrumb(f *testing.F) {
	for _, text := range []string{"/w\n/s/p/f.jsonl\n", "/w\n/f.jsonl\nfresh\ncwdstat 1 2\n", "\xEF\xBB\xBF\n /w\n/f.jsonl \t\n", "", "/w", "/w\r\n/p/f.jsonl\r\n", "\x00\n\xff\n"} {
		f.Add([]byte(text), "p/f.jsonl")
	}
	f.Fuzz(func(t *testing.T, text []byte, family string) {
		files := memory.New()
		require.NoError(t, files.WriteFile("t", text))
		file, err := ReadBreadcrumb(files, "t")
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotFound)
			require.Empty(t, file)
			return
		}
		require.NotContains(t, file, "\n")
		require.Contains(t, string(text), file)
		require.LessOrEqual(t, len(text), maxBreadcrumb)
		if !strings.HasSuffix(family, sessioncore.FileEnding) {
			family += sessioncore.FileEnding
		}
		crumb := breadcrumb{file: file}
		_ = crumb.isOf(family)
		crumb.file = "/store/" + family
		require.True(t, crumb.isOf(family))
	})
}
