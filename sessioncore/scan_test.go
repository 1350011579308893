package sessioncore

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSkipValue(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	mixed := strings.Repeat(`{"a":[`, 5_000) + "1" + strings.Repeat("]}", 5_000)
	for _, c := range []struct {
		text   string
		status scanStatus
		end    int // of the value where it is whole
	}{
		{`{}`, scanOK, 2},
		{` [1, 2 ,{"a":null}] rest`, scanOK, 19},
		{`"a\u00e9\n\/"`, scanOK, 13},
		{`-0.5e+10,`, scanOK, 8},
		{`0`, scanOK, 1},
		{`01`, scanOK, 1}, // the zero is the value; what follows is another matter
		{`true`, scanOK, 4},
		{deep, scanOK, len(deep)},
		{mixed, scanOK, len(mixed)},
		{``, scanShort, 0},
		{`{"a":`, scanShort, 0},
		{`{"a"`, scanShort, 0},
		{`[1,`, scanShort, 0},
		{`"abc`, scanShort, 0},
		{`"abc\`, scanShort, 0},
		{`"abc\u12`, scanShort, 0},
		{`tru`, scanShort, 0},
		{`-`, scanShort, 0},
		{`1e`, scanShort, 0},
		{deep[:len(deep)-1], scanShort, 0},
		{"\"a\nb\"", scanBad, 0},
		{"\"a\x01b\"", scanBad, 0},
		{"\"12345678\x1f\"", scanBad, 0},
		{`"\x"`, scanBad, 0},
		{`"\u12g4"`, scanBad, 0},
		{`[1 2]`, scanBad, 0},
		{`[1,]`, scanBad, 0},
		{`{"a":1,}`, scanBad, 0},
		{`{a:1}`, scanBad, 0},
		{`{"a" 1}`, scanBad, 0},
		{`[}`, scanBad, 0},
		{`{"a":[}`, scanBad, 0},
		{`+1`, scanBad, 0},
		{`.5`, scanBad, 0},
		{`1.x`, scanBad, 0},
		{`nul!`, scanBad, 0},
		{"\x00", scanBad, 0},
		{"\u00a0 1", scanBad, 0},
	} {
		var s scanner
		end, status := s.skipValue([]byte(c.text), 0)
		require.Equal(t, c.status, status, "%.40q", c.text)
		if status == scanOK {
			require.Equal(t, c.end, end, "%.40q", c.text)
		}
	}
}

// TestSkipStringEverywhere puts each byte at each place of the words that skipString looks at.
func TestSkipStringEverywhere(t *testing.T) {
	for at := range 24 {
		for c := range 256 {
			text := []byte(`"` + strings.Repeat("x", 24) + `" tail`)
			text[1+at] = byte(c)
			var s scanner
			end, status := s.skipValue(text, 0)
			switch {
			case c == '"':
				require.Equal(t, scanOK, status)
				require.Equal(t, at+2, end)
			case c < 0x20:
				require.Equal(t, scanBad, status, "byte %#x at %d", c, at)
			case c == '\\' && at == 23: // it takes the quote with it
				require.Equal(t, scanShort, status)
			case c == '\\':
				require.Equal(t, scanBad, status, "there is no escape \\x")
			default:
				require.Equal(t, scanOK, status, "byte %#x at %d", c, at)
				require.Equal(t, 26, end)
				require.Equal(t, c >= 0x80, s.flags&flagHighBytes != 0)
			}
		}
	}
}

// FuzzScan: what the scanner takes for a whole value, the standard library takes too, and the other way
// round, but for the depth that the latter allows.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u00e9\\"],"b":{"c":null}}`, `[[[]]]`, `"\ud800"`, `{"a":1}{`, "\"\xff\"", `-0`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s scanner
		end, status := s.skipValue(text, 0)
		whole := status == scanOK && skipSpace(text, end) == len(text)
		if strings.Count(string(text), "[")+strings.Count(string(text), "{") < 1000 {
			require.Equal(t, json.Valid(text), whole, "%q", text)
		}
		if status == scanOK {
			require.True(t, json.Valid(text[:end]) || strings.Count(string(text), "[") >= 1000)
		}
		var info lineInfo
		s.classify(text, &info)
		require.Equal(t, whole && text[skipSpace(text, 0)] == '{', info.class == lineObject)
	})
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		text string
		want scanFlags
	}{
		{`"plain"`, 0},
		{`{"data":"blob:sha256:00"}`, flagBlob},
		{`{"data":"\u0062lob:sha256\u003a00"}`, flagBlob},
		{`{"data":"xblob:sha256:00"}`, 0},
		{`{"blob:sha256:00":1}`, 0},
		{`"é"`, flagHighBytes},
		{`1e5`, 0},
		{`1e400`, flagBigNumber},
		{strings.Repeat("9", 309), flagBigNumber},
	} {
		var s scanner
		_, status := s.skipValue([]byte(c.text), 0)
		require.Equal(t, scanOK, status)
		require.Equal(t, c.want, s.flags, "%.40s", c.text)
	}
}
