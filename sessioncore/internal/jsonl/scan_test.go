package jsonl

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

func TestSkipValue(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	mixed := strings.Repeat(`{"a":[`, 5_000) + "1" + strings.Repeat("]}", 5_000)
	for _, c := range []struct {
		text   string
		status rawjson.Status
		end    int // of the value where it is whole
	}{
		{`{}`, rawjson.OK, 2},
		{` [1, 2 ,{"a":null}] rest`, rawjson.OK, 19},
		{`"a\u00e9\n\/"`, rawjson.OK, 13},
		{`-0.5e+10,`, rawjson.OK, 8},
		{`0`, rawjson.OK, 1},
		{`01`, rawjson.OK, 1}, // the zero is the value; what follows is another matter
		{`true`, rawjson.OK, 4},
		{deep, rawjson.OK, len(deep)},
		{mixed, rawjson.OK, len(mixed)},
		{``, rawjson.Short, 0},
		{`{"a":`, rawjson.Short, 0},
		{`{"a"`, rawjson.Short, 0},
		{`[1,`, rawjson.Short, 0},
		{`"abc`, rawjson.Short, 0},
		{`"abc\`, rawjson.Short, 0},
		{`"abc\u12`, rawjson.Short, 0},
		{`tru`, rawjson.Short, 0},
		{`-`, rawjson.Short, 0},
		{`1e`, rawjson.Short, 0},
		{deep[:len(deep)-1], rawjson.Short, 0},
		{"\"a\nb\"", rawjson.Bad, 0},
		{"\"a\x01b\"", rawjson.Bad, 0},
		{"\"12345678\x1f\"", rawjson.Bad, 0},
		{`"\x"`, rawjson.Bad, 0},
		{`"\u12g4"`, rawjson.Bad, 0},
		{`[1 2]`, rawjson.Bad, 0},
		{`[1,]`, rawjson.Bad, 0},
		{`{"a":1,}`, rawjson.Bad, 0},
		{`{a:1}`, rawjson.Bad, 0},
		{`{"a" 1}`, rawjson.Bad, 0},
		{`[}`, rawjson.Bad, 0},
		{`{"a":[}`, rawjson.Bad, 0},
		{`+1`, rawjson.Bad, 0},
		{`.5`, rawjson.Bad, 0},
		{`1.x`, rawjson.Bad, 0},
		{`nul!`, rawjson.Bad, 0},
		{"\x00", rawjson.Bad, 0},
		{"\u00a0 1", rawjson.Bad, 0},
	} {
		var s rawjson.Scanner
		end, status := s.SkipValue([]byte(c.text), 0)
		require.Equal(t, c.status, status, "%.40q", c.text)
		if status == rawjson.OK {
			require.Equal(t, c.end, end, "%.40q", c.text)
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
		var s rawjson.Scanner
		end, status := s.SkipValue(text, 0)
		whole := status == rawjson.OK && rawjson.SkipSpace(text, end) == len(text)
		if strings.Count(string(text), "[")+strings.Count(string(text), "{") < 1000 {
			require.Equal(t, json.Valid(text), whole, "%q", text)
		}
		if status == rawjson.OK {
			require.True(t, json.Valid(text[:end]) || strings.Count(string(text), "[") >= 1000)
		}
		var info LineInfo
		classify(&s, text, &info)
		require.Equal(t, whole && text[rawjson.SkipSpace(text, 0)] == '{', info.class == lineObject)
	})
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		text string
		want rawjson.Flags
	}{
		{`"plain"`, 0},
		{`{"data":"blob:sha256:00"}`, rawjson.HasBlob},
		{`{"data":"\u0062lob:sha256\u003a00"}`, rawjson.HasBlob},
		{`{"data":"xblob:sha256:00"}`, 0},
		{`{"blob:sha256:00":1}`, 0},
		{`"é"`, rawjson.HasHighBytes},
		{`1e5`, 0},
		{`1e400`, rawjson.HasBigNumber},
		{strings.Repeat("9", 309), rawjson.HasBigNumber},
	} {
		var s rawjson.Scanner
		_, status := s.SkipValue([]byte(c.text), 0)
		require.Equal(t, rawjson.OK, status)
		require.Equal(t, c.want, s.Flags, "%.40s", c.text)
	}
}

func TestLastNewline(t *testing.T) {
	for _, size := range []int{0, 1, newlinePiece - 1, newlinePiece, newlinePiece + 1, 3*newlinePiece + 5} {
		text := bytes.Repeat([]byte("x"), size)
		require.Equal(t, -1, lastNewline(text))
		for at := range text {
			text[at] = '\n'
			require.Equal(t, at, lastNewline(text), "of %d bytes", size)
			if at%100 != 0 { // the others stay, before the next ones
				text[at] = 'x'
			}
		}
	}
}
