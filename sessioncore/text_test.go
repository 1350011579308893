package sessioncore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestDecodeAndQuote: the bodies of strings are decoded to WTF-8, and quoted as JSON.stringify does.
func TestDecodeAndQuote(t *testing.T) {
	sessiontest.Table(t, "testdata/texts.txt", func(_ *testing.T, _, body string) string {
		text := rawjson.AppendDecoded(nil, []byte(body))
		return fmt.Sprintf("%+q %s", text, rawjson.AppendQuoted(nil, string(text)))
	})
	for body, want := range map[string]string{ // bytes that are no UTF-8
		"\xff": "\ufffd", "a cut sequence is one: \xe2\x82b": "a cut sequence is one: \ufffdb", "\xf0\x9f\x98": "\ufffd",
		"a raw surrogate is three: \xed\xa0\xbd": "a raw surrogate is three: \ufffd\ufffd\ufffd", "\xc0\x80\xf5": "\ufffd\ufffd\ufffd",
		"overlong: \xe0\x9f\xbf": "overlong: \ufffd\ufffd\ufffd", "beyond Unicode: \xf4\x90\x80\x80": "beyond Unicode: \ufffd\ufffd\ufffd\ufffd",
		"begins like a surrogate: \xed\x9f\xbf": "begins like a surrogate: \ud7ff",
	} {
		text := string(rawjson.AppendDecoded(nil, []byte(body)))
		require.Equal(t, want, text, "%q", body)
		require.Equal(t, `"`+want+`"`, string(rawjson.AppendQuoted(nil, text)), "%q", body)
	}
}
