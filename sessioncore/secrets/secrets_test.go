package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// Secrets of many kinds, made at run time: a scanner of this repository must not find them.
var planted = []struct{ secret, around string }{
	{"ghp" + "_" + mixed(36), "the token is %s."},
	{"AKI" + "A" + "QYLPMN5HFIQR7XYA", "export AWS_ACCESS_KEY_ID=%s"},
	{"glp" + "at-" + mixed(20), "git clone https://oauth2:%s@gitlab.com/a/b"},
	{"ey" + "JhbGciOiJIUzI1NiJ9x." + "ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0." + mixed(43), "Authorization: Bearer %s"},
	{"-----BEGIN RSA PRIVATE " + "KEY-----\n" + mixed(64) + "\n" + mixed(64) + "\n-----END RSA PRIVATE " + "KEY-----", "cat id_rsa\n%s\n"},
	{mixed(32), `{"api_key": "%s"}`},
}

const uuid = "3f2b8a1c-9d4e-4b7f-8a6c-1e5d9b0c7f2a"

// mixed returns n letters and digits without any order.
func mixed(n int) string {
	return pick(n, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
}
func hexed(n int) string { return pick(n, "0123456789abcdef") }

// pick returns n characters of a set, by a generator (xorshift) that begins anew in each call.
func pick(n int, from string) string {
	var out strings.Builder
	x := uint64(n)*0x9E3779B97F4A7C15 + 7
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out.WriteByte(from[x%uint64(len(from))])
	}
	return out.String()
}

// TestRules compiles every rule, and holds the few whose keywords are other ones here against their expressions.
func TestRules(t *testing.T) {
	set := Known()
	require.Greater(t, len(set.rules), 200)
	anchored := 0
	for _, r := range set.rules {
		r.regex()
		if r.anchored {
			anchored++
		}
		for _, list := range append(r.allow, set.allow...) {
			if list.regex != nil {
				list.regex()
			}
		}
	}
	require.Greater(t, anchored, 90)
	named := slices.Concat(matchRules, notForText, atKeyword, notAtKeyword, vague)
	for _, id := range slices.AppendSeq(named, maps.Keys(rarerKeyword)) {
		require.Contains(t, gitleaksFile+moreFile, `id = "`+id+`"`)
	}
}

// scan searches a file with this content.
func scan(t *testing.T, file string) *Scan {
	t.Helper()
	s := &Scan{Pointers: true}
	require.NoError(t, s.Extend(t.Context(), strings.NewReader(file), int64(len(file))))
	return s
}

// masked returns a file with the places of a scan masked.
func masked(s *Scan, file string) string { return string(hidden(s, []byte(file))) }

// escaped returns text as a JSON string in which each third character is escaped.
func escaped(text string) string {
	out := []byte{'"'}
	for i, r := range []rune(text) {
		if i%3 == 0 {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		quoted := plain(string(r))
		out = append(out, quoted[1:len(quoted)-1]...)
	}
	return string(append(out, '"'))
}

// TestPlaces looks for secrets in every place of a file that can hold one.
func TestPlaces(t *testing.T) {
	lines("testdata/places.txt", func(line string) {
		file, where, _ := strings.Cut(line, " →")
		s := scan(t, file)
		require.NotEmpty(t, s.Places, line)
		requireMasked(t, []string{file}, token, word, mixed(64))
		require.Equal(t, strings.TrimSpace(where), s.Places[0].Where, line)
		for _, p := range s.Places {
			require.NotContains(t, p.Where, token, line)
		}
	})
}

// TestKnownElsewhere looks for a secret where no rule would find it, before and after the place that tells.
func TestKnownElsewhere(t *testing.T) {
	file := `{"a":"first ` + word + `"}` + "\n" + `{"password":"` + word + `"}` + "\n" + word + "x\n"
	s := scan(t, file)
	require.NotContains(t, masked(s, file), word)
	require.Len(t, s.Places, 3)
	require.Equal(t, "*", s.Clean("x"+word+"y"))
	require.Equal(t, "harmless", s.Clean("harmless"))
}

// TestExtend holds a file that grows byte by byte against one that is searched at once.
func TestExtend(t *testing.T) {
	file := strings.Join([]string{
		`{"a":"` + word + `"}`,
		"-----BEGIN",
		token,
		"",
		`{"b":`,
		`"` + token + `"}`,
		`{"password":"` + word + `"}`,
		"{}",
		"x " + word,
	}, "\n")
	for step := 1; step < len(file); step += 6 {
		grown := &Scan{Pointers: true}
		size := 0
		for size < len(file) {
			size = min(size+step, len(file))
			require.NoError(t, grown.Extend(t.Context(), strings.NewReader(file), int64(size)))
		}
		require.Equal(t, scan(t, file).Places, grown.Places, step)
	}
}

// TestTooMany is a file of nothing but secrets, and a search that is cancelled.
func TestTooMany(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for _, lines := range []int{MaxPlaces, MaxPlaces + 1} {
		file := strings.Repeat(`{"a":"`+planted[0].secret+`"}`+"\n", lines)
		s := &Scan{}
		err := s.Extend(t.Context(), strings.NewReader(file), int64(len(file)))
		require.Equal(t, lines > MaxPlaces, errors.Is(err, errTooMany), err)
		require.Len(t, s.Places, MaxPlaces)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, (&Scan{}).Extend(ctx, strings.NewReader("{}"), 2), context.Canceled)
}

// TestHostileText: in text in which keywords follow each other, or begin what has no end, no rule and no secret is found within
// what it has found already: the work grows as the text does.
func TestHostileText(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for _, piece := range []string{
		"password=", `password="`, "://a:b@", "Bearer 0a", "SECRET=a(", "api_key: ", "eyJ0aaaaaaaaaa.", "sk-a0-", `"token":"`,
		"-----BEGIN PRIVATE KEY-----\n", "machine a login b password ", `\"`, `\u0022`, "TOKEN='<", "ghp" + "_" + mixed(36),
		"Cookie: a=b0c0d0e0;", "curl -u a:b0c ", "docker login -p a0b ", "machine a login b ", "$1$a$$6$", "--password=a",
		":5432:a:b:", "{SSHA}", "TRUE\t/\t",
	} {
		text := []byte(strings.Repeat(piece, 64<<10/len(piece)))
		var known values
		found := map[string]int{}
		require.NoError(t, Known().find(t.Context(), text, func(m match) {
			found[m.kind] += m.end - m.start
			known.add(text[m.start:m.end], "again")
		}))
		known.find(text, func(m match) { found["again"] += m.end - m.start })
		for kind, size := range found {
			most := len(text)
			if kind == "again" {
				most *= len(known.kinds)
			}
			require.LessOrEqual(t, size, most, "%s in %s", kind, piece)
		}
	}
}

// FuzzScan: places are in order and within the file; masking keeps each line valid JSON that was it, and leaves nothing
// of what was found; a file that grows is searched as if it had been there at once.
func FuzzScan(f *testing.F) {
	for _, p := range planted {
		text := strings.ReplaceAll(p.around, "%s", p.secret)
		message := map[string]any{"content": []string{text}}
		line, _ := json.Marshal(map[string]any{"message": message, "password": p.secret})
		f.Add(append(line, "\n"+text...), uint(len(line)/2))
		f.Add([]byte(`{"`+p.secret+`":`+escaped(text)+"}\r\n\n"+text+"\n{"), uint(9))
	}
	for _, example := range formats {
		f.Add([]byte(`{"a":`+plain(plain(example))+"}\n"+example), uint(20))
	}
	f.Add([]byte("{\"a\":[1,true,\"\\\"\\u00e9\\ud83d\\ude00\\ud800\\q\xff\"],\"b\":{}}\n]\n\x00"), uint(20))
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		whole := scan(t, string(data))
		requirePlaces(t, whole.Places, data)
		masked := hidden(whole, data)
		requireSameLines(t, data, masked)
		again := pass{Scan: &Scan{values: whole.values}}
		require.NoError(t, again.run(t.Context(), bytes.NewReader(masked), int64(len(masked))))
		require.Empty(t, again.Places, "%q", masked)
		grown := &Scan{Pointers: true}
		before := cut % uint(len(data)+1) // the size from which the file grows
		for _, size := range []int64{int64(before), int64(len(data))} {
			require.NoError(t, grown.Extend(t.Context(), bytes.NewReader(data), size))
		}
		if !knownEarlier(whole, grown) {
			require.Equal(t, string(masked), string(hidden(grown, data)), "grown at %d", before)
		}
	})
}

// requirePlaces requires that places are in order, do not overlap, are within the data, and have the numbers of their
// lines.
func requirePlaces(t *testing.T, places []SecretPlace, data []byte) {
	t.Helper()
	end := int64(0) // of the place before
	for _, p := range places {
		require.GreaterOrEqual(t, p.Offset, end, "%+v", p)
		require.Positive(t, p.Size, "%+v", p)
		end = p.Offset + p.Size
		require.LessOrEqual(t, end, int64(len(data)), "%+v", p)
		newlines := bytes.Count(data[:p.Offset], []byte("\n"))
		require.EqualValues(t, newlines+1, p.Line)
	}
}

// requireSameLines requires that each line keeps its length when it is masked, and stays valid JSON if it was.
func requireSameLines(t *testing.T, data, masked []byte) {
	t.Helper()
	after := bytes.Split(masked, []byte("\n"))
	for i, line := range bytes.Split(data, []byte("\n")) {
		require.Len(t, after[i], len(line), "%q became %q", line, after[i])
		if json.Valid(line) {
			require.True(t, json.Valid(after[i]), "%q became %q", line, after[i])
		}
	}
}

// hidden returns data with what was found masked.
func hidden(s *Scan, data []byte) []byte {
	out := bytes.Clone(data)
	Hide(out, 0, s.Places)
	return out
}

// knownEarlier reports whether the beginning of a torn line had a secret that the whole line has not: that stays known.
func knownEarlier(whole, grown *Scan) bool { return len(grown.values.kinds) > len(whole.values.kinds) }
