package writer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
)

var longBase64 = strings.Repeat("QUJD", 256)

// TestPersistAsItsClient: which client's rules count is found from the file, and looked at under the lock.
func TestPersistAsItsClient(t *testing.T) {
	const line = `{"type":"custom","customType":"c","data":{"partialJson":"p","x":{"mimeType":"image/png","images":[{"type":"image","mimeType":"IMAGE/PNG","data":"`
	const slot = `{"type":"title","v":1,"title":"t","updatedAt":"","pad":""}` + "\n"
	for name, test := range map[string]struct {
		file string
		kept bool
	}{"of 14.9.9": {plainFile, false}, "of 18": {slot + plainFile, true}} {
		t.Run(name, func(t *testing.T) {
			w := startMemory(t, test.file, Options{})
			_, err := w.append(line + longBase64 + `"}]}}}`)
			require.NoError(t, err)
			require.Equal(t, test.kept, strings.Contains(w.content(), `"partialJson"`))
			require.Equal(t, test.kept, strings.Contains(w.content(), `"blob:sha256:9f167a`))
			require.Equal(t, test.kept, len(w.blobs.blobs) == 1)
			if test.kept {
				require.Equal(t, []string{"png"}, w.blobs.endings)
			}
		})
	}
}

func TestBlobsBeforeTheLine(t *testing.T) {
	w := startMemory(t, plainFile, Options{})
	_, err := w.append(`{"type":"message","message":{"role":"user","content":[{"type":"image","data":"` + longBase64 + `"}]}}`)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("ABC", 256), w.blobs.blobs["9f167a0cd6a6c458fe987389ae9f7ade033e87b3cd888742573f527d1c5d3a29"])
	require.Contains(t, w.content(), `"data":"blob:sha256:9f167a`)

	_, err = w.append(`{"type":"message","parentId":"gone","message":{"role":"user","content":[{"type":"image","data":"` + strings.Repeat("QUJE", 256) + `"}]}}`)
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
	require.Len(t, w.blobs.blobs, 1, "no blob of a refused line")
}
