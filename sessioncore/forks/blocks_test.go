package forks

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMediaType: the first bytes of an image tell its kind, however few there are.
func TestMediaType(t *testing.T) {
	for content, want := range map[string]string{
		"\x89PNG\r\n\x1a\nmore":       "image/png",
		"\x89PNG":                     "",
		"\xff\xd8\xff":                "image/jpeg",
		"GIF87a":                      "image/gif",
		"GIF89a more":                 "image/gif",
		"RIFF\x04\x00\x00\x00WEBPVP8": "image/webp",
		"RIFF\x04\x00\x00\x00WAVEfmt": "",
		"RIFF\x04\x00\x00\x00WEB":     "",
		"RIFF\x04\x00":                "",
		"RIFF":                        "",
		"":                            "",
	} {
		data := base64.StdEncoding.EncodeToString([]byte(content))
		require.Equal(t, want, mediaTypeOf(data), "%q", content)
	}
	require.Empty(t, mediaTypeOf("R0lGODlh!"), "it is no base64")
}
