package fs_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A reader of JSON for comparisons, as the conformance README wants them: encoding/json loses lone
// surrogates and nests no deeper than 10,000 levels. It shares no code with what is tested.

// object is a JSON object; of repeated keys the last counts. Strings are WTF-8.
type object map[string]any

// number is a JSON number, canonical.
type number string

type jsonReader struct {
	text string
	at   int
}

// parseJSON reads a text that is one JSON value.
func parseJSON(t testing.TB, text string) any {
	t.Helper()
	r := &jsonReader{text: strings.ToValidUTF8(text, "\uFFFD")}
	v, err := r.value()
	r.space()
	require.NoError(t, err, "%.300q", text)
	require.Equal(t, len(r.text), r.at, "text after the value: %.300q", text)
	return v
}

func (r *jsonReader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
}

// next returns the next byte that is no space, 0 at the end.
func (r *jsonReader) next() byte {
	if r.space(); r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

func (r *jsonReader) value() (any, error) {
	switch c := r.next(); {
	case c == '{':
		o := object{}
		return o, r.list('}', func() error {
			r.space()
			key, err := r.string()
			if err == nil && r.next() != ':' {
				err = r.fail("colon")
			}
			if err != nil {
				return err
			}
			r.at++
			o[key], err = r.value()
			return err
		})
	case c == '[':
		list := []any{}
		err := r.list(']', func() error {
			v, err := r.value()
			list = append(list, v)
			return err
		})
		return list, err
	case c == '"':
		return r.string()
	case c == '-' || c >= '0' && c <= '9':
		start := r.at
		for r.at < len(r.text) && strings.IndexByte("+-.eE0123456789", r.text[r.at]) >= 0 {
			r.at++
		}
		return canonicalNumber(r.text[start:r.at])
	}
	for word, v := range map[string]any{"true": true, "false": false, "null": nil} {
		if strings.HasPrefix(r.text[r.at:], word) {
			r.at += len(word)
			return v, nil
		}
	}
	return nil, r.fail("value")
}

// list reads members up to a closing bracket; r stands on the opening one.
func (r *jsonReader) list(closing byte, member func() error) error {
	r.at++
	if r.next() == closing {
		r.at++
		return nil
	}
	for {
		if err := member(); err != nil {
			return err
		}
		switch r.next() {
		case ',':
			r.at++
		case closing:
			r.at++
			return nil
		default:
			return r.fail("comma or bracket")
		}
	}
}

func (r *jsonReader) fail(what string) error { return fmt.Errorf("at %d: a %s is missing", r.at, what) }

func (r *jsonReader) string() (string, error) {
	var units []byte // WTF-8
	high := rune(0)
	for r.at++; r.at < len(r.text); {
		c := r.text[r.at]
		r.at++
		switch {
		case c == '"':
			return string(units), nil
		case c < 0x20:
			return "", r.fail("character")
		case c != '\\':
			units, high = append(units, c), 0
			continue
		}
		e := r.text[r.at]
		r.at++
		if e != 'u' {
			i := strings.IndexByte(`"\/bfnrt`, e)
			if i < 0 {
				return "", r.fail("escape")
			}
			units, high = append(units, "\"\\/\b\f\n\r\t"[i]), 0
			continue
		}
		n, err := strconv.ParseUint(r.text[r.at:r.at+4], 16, 16)
		if err != nil {
			return "", err
		}
		r.at += 4
		unit := rune(n)
		if high != 0 && unit >= 0xDC00 && unit < 0xE000 {
			units = utf8.AppendRune(units[:len(units)-3], 0x10000+(high-0xD800)<<10+unit-0xDC00)
			high = 0
			continue
		}
		if high = 0; unit >= 0xD800 && unit < 0xDC00 {
			high = unit
		}
		if unit >= 0xD800 && unit < 0xE000 {
			units = append(units, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0xBF, 0x80|byte(unit)&0xBF)
		} else {
			units = utf8.AppendRune(units, unit)
		}
	}
	return "", r.fail("quote")
}

// canonicalNumber: as JavaScript writes it; what overflows a double is null.
func canonicalNumber(text string) (any, error) {
	f, err := strconv.ParseFloat(text, 64)
	switch a := math.Abs(f); {
	case math.IsInf(f, 0):
		return nil, nil
	case err != nil:
		return nil, err
	case f == 0:
		return number("0"), nil
	case a >= 1e-6 && a < 1e21:
		return number(strconv.FormatFloat(f, 'f', -1, 64)), nil
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return number(mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")), nil
}

// canonical is the canonical JSON of the conformance README.
func canonical(v any) string {
	var b strings.Builder
	writeCanonical(&b, v)
	return b.String()
}

func writeCanonical(b *strings.Builder, v any) {
	switch v := v.(type) {
	case object:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, k)
			b.WriteByte(':')
			writeCanonical(b, v[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, e)
		}
		b.WriteByte(']')
	case string:
		writeString(b, v)
	case number:
		b.WriteString(string(v))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	default:
		b.WriteString("null")
	}
}

var shortEscapes = map[byte]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func writeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch escape := shortEscapes[c]; {
		case escape != "":
			b.WriteString(escape)
		case c < 0x20:
			fmt.Fprintf(b, `\u%04x`, c)
		case c == 0xED && i+2 < len(s) && s[i+1] >= 0xA0:
			fmt.Fprintf(b, `\u%04x`, 0xD000|int(s[i+1]&0x3F)<<6|int(s[i+2]&0x3F))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

// sameJSON compares two values and shows where they part.
func sameJSON(t testing.TB, what string, want, got any) {
	t.Helper()
	w, g := canonical(want), canonical(got)
	if w == g {
		return
	}
	at := 0
	for at < len(w) && at < len(g) && w[at] == g[at] {
		at++
	}
	from := max(0, at-100)
	t.Errorf("%s differs at %d:\nwant …%.300s\ngot  …%.300s", what, at, w[from:], g[from:])
}
