package sessioncore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

func TestDecodeAndQuote(t *testing.T) {
	for _, c := range []struct {
		body   string // between the quotes, as in a file
		text   string // WTF-8
		quoted string // as JSON.stringify writes it
	}{
		{`plain`, "plain", `"plain"`},
		{`a\"\\\/\b\f\n\r\t`, "a\"\\/\b\f\n\r\t", `"a\"\\/\b\f\n\r\t"`},
		{`\u00e9\u0041`, "éA", `"éA"`},
		{`\u0000\u001f`, "\x00\x1f", `"\u0000\u001f"`},
		{`\ud83d\ude00`, "😀", `"😀"`},
		{`\uD83D\uDE00`, "😀", `"😀"`},
		{`\ud83d`, "\xed\xa0\xbd", `"\ud83d"`},
		{`\ude00\ud83d`, "\xed\xb8\x80\xed\xa0\xbd", `"\ude00\ud83d"`},
		{`\ud83dx`, "\xed\xa0\xbdx", `"\ud83dx"`},
		{`\ud83d\n`, "\xed\xa0\xbd\n", `"\ud83d\n"`},
		{`\ud83d\u0041`, "\xed\xa0\xbdA", `"\ud83dA"`},
		{"\u2028<", "\u2028<", "\"\u2028<\""},
		{"\xff", "\ufffd", "\"\ufffd\""},
		{"a\xe2\x82b", "a\ufffdb", "\"a\ufffdb\""},                                       // a cut sequence is one
		{"\xed\xa0\xbd", "\ufffd\ufffd\ufffd", "\"\ufffd\ufffd\ufffd\""},                 // a raw surrogate is three
		{"\xf0\x9f\x98", "\ufffd", "\"\ufffd\""},                                         //
		{"\xc0\x80\xf5", "\ufffd\ufffd\ufffd", "\"\ufffd\ufffd\ufffd\""},                 // bytes of no sequence
		{"\xe0\x9f\xbf", "\ufffd\ufffd\ufffd", "\"\ufffd\ufffd\ufffd\""},                 // overlong
		{"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd", "\"\ufffd\ufffd\ufffd\ufffd\""}, // beyond Unicode
		{"퟿", "\xed\x9f\xbf", "\"\xed\x9f\xbf\""},                                        // begins like a surrogate
	} {
		text := string(rawjson.AppendDecoded(nil, []byte(c.body)))
		require.Equal(t, c.text, text, "%q", c.body)
		require.Equal(t, c.quoted, string(rawjson.AppendQuoted(nil, text)), "%q", c.body)
	}
}
