package rawjson

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecodeCut: a body that was cut anywhere ends, with a backslash that begins no escape as it is.
func TestDecodeCut(t *testing.T) {
	const body = `a\n\ud83d\ude00\\\u00fc`
	for body, want := range map[string]string{
		body: "a\n😀\\ü", body[:2]: `a\`, body[:8]: "a\n\\ud83", body[:9]: "a\n\xed\xa0\xbd", body[:10]: "a\n\xed\xa0\xbd\\",
		body[:17]: "a\n😀\\", body[:16]: "a\n😀\\", `\`: `\`, `\u`: `\u`, `\q\`: `\q\`,
	} {
		require.Equal(t, want, string(AppendDecoded(nil, []byte(body))), "%s", body)
	}
	for cut := range len(body) {
		require.LessOrEqual(t, len(AppendDecoded(nil, []byte(body[:cut]))), cut)
	}
}
