package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzScan: places are in order and within the file; masking keeps each line valid JSON that was it, and leaves nothing
// of what was found; a file that grows is searched as if it had been there at once.
func FuzzScan(f *testing.F) {
	for _, p := range planted {
		text := strings.ReplaceAll(p.around, "%s", p.secret)
		line, _ := json.Marshal(map[string]any{"message": map[string]any{"content": []string{text}}, "password": p.secret})
		f.Add(append(line, "\n"+text...), uint(len(line)/2))
		f.Add([]byte(`{"`+p.secret+`":`+escaped(text, func(i int) bool { return i%3 == 0 })+"}\r\n\n"+text+"\n{"), uint(9))
	}
	f.Add([]byte("{\"a\":[1,true,\"\\\"\\u00e9\\ud83d\\ude00\\ud800\\q\xff\"],\"b\":{}}\n]\n\x00"), uint(20))
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		whole := &Scan{Pointers: true}
		if err := whole.Extend(context.Background(), bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
		masked, end := hidden(whole, data), int64(0)
		for _, p := range whole.Places {
			if p.Offset < end || p.Size <= 0 || p.Offset+p.Size > int64(len(data)) || p.Line < 1 {
				t.Fatalf("%+v after %d", p, end)
			}
			if line := int64(bytes.Count(data[:p.Offset], []byte("\n"))) + 1; line != p.Line {
				t.Fatalf("%+v is in line %d", p, line)
			}
			end = p.Offset + p.Size
		}
		after := bytes.Split(masked, []byte("\n"))
		for i, line := range bytes.Split(data, []byte("\n")) {
			if len(after[i]) != len(line) || json.Valid(line) && !json.Valid(after[i]) {
				t.Fatalf("%q became %q", line, after[i])
			}
		}
		again := pass{Scan: &Scan{values: whole.values}}
		if err := again.run(context.Background(), bytes.NewReader(masked), int64(len(masked))); err != nil || len(again.Places) > 0 {
			t.Fatalf("%v: %+v still in %q", err, again.Places, masked)
		}
		grown := &Scan{Pointers: true}
		for _, size := range []int64{int64(cut % uint(len(data)+1)), int64(len(data))} {
			if err := grown.Extend(context.Background(), bytes.NewReader(data), size); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := hidden(whole, data), hidden(grown, data); !bytes.Equal(a, b) && !knownEarlier(whole, grown) {
			t.Fatalf("at once %q, grown at %d %q", a, cut%uint(len(data)+1), b)
		}
	})
}

// hidden returns data with what was found masked.
func hidden(s *Scan, data []byte) []byte {
	out := bytes.Clone(data)
	Hide(out, 0, s.Places)
	return out
}

// knownEarlier reports whether the beginning of a torn line had a secret that the whole line has not: that stays known.
func knownEarlier(whole, grown *Scan) bool { return len(grown.values.kinds) > len(whole.values.kinds) }
