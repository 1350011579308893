package fs_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// object is a JSON object.
type object = map[string]any

// parseJSON reads a text that is one JSON value. Numbers are those of JavaScript: what overflows a double is null. Lone
// surrogates are one like the other; package sessioncore compares them, with a reader of its own.
func parseJSON(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%.300q", text)
	require.False(t, d.More(), "text after the value: %.300q", text)
	return withDoubles(t, v)
}

func withDoubles(t testing.TB, v any) any {
	switch v := v.(type) {
	case object:
		for key := range v {
			v[key] = withDoubles(t, v[key])
		}
	case []any:
		for i := range v {
			v[i] = withDoubles(t, v[i])
		}
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if math.IsInf(f, 0) {
			return nil
		}
		require.NoError(t, err)
		return f + 0 // no negative zero
	}
	return v
}

// quoted is a text as JSON. It may have lone surrogates, as UTF-8 would write them.
func quoted(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\' || c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		case c == 0xED && i+2 < len(text) && text[i+1] >= 0xA0:
			fmt.Fprintf(&b, `\u%04x`, 0xD000|int(text[i+1]&0x3F)<<6|int(text[i+2]&0x3F))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

// sameJSON compares two values and shows where they part.
func sameJSON(t testing.TB, what string, want, got any) {
	t.Helper()
	text := func(v any) string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return string(b)
	}
	w, g := text(want), text(got)
	at := 0
	for at < len(w) && at < len(g) && w[at] == g[at] {
		at++
	}
	if from := max(0, at-100); w != g {
		t.Errorf("%s differs at %d:\nwant …%.300s\ngot  …%.300s", what, at, w[from:], g[from:])
	}
}
