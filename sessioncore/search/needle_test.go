package search

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/message"
)

// messageOf is a line of a session: an entry with an id below another one.
func messageOf(id, parent, message string) string {
	line := sessiontest.At(6, id, parent, `,"message":`+message)
	return strings.Replace(line, `"custom"`, `"message"`, 1)
}

// touching searches a session for a file that its calls name.
func touching(t *testing.T, file, session string) *Result {
	t.Helper()
	m, err := NewTouched(file)
	require.NoError(t, err)
	r, err := New(SearchedSessions{Files: sessiontest.Memory(t, []byte(session))}).Search(t.Context(), m)
	require.NoError(t, err)
	return r
}

// TestTouched: each way in which a call can name a file.
func TestTouched(t *testing.T) {
	t.Setenv("HOME", "/home/elsewhere")
	sessiontest.Page(t, "testdata/touched.txt", func(t *testing.T, name, call, want string) {
		call = `{"role":"assistant","content":[` + call + `]}`
		session := strings.Replace(sessiontest.Header, "/w", "/home/dev", 1) +
			messageOf("u", "", `{"role":"user","content":[{"type":"text","text":"\n do it\nplease"}]}`) +
			messageOf("a", "u", call) + messageOf("b", "", call)
		for line := range strings.Lines(want) {
			file, shown, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			r := touching(t, file, session)
			if shown == "-" {
				require.Equal(t, "time\tsession\twhat\tpath\tprompt\ttext\tcopies\n", string(r.Table()), "%s: %s", name, file)
				continue
			}
			require.Len(t, r.Hits, 2, "%s: %s", name, file)
			require.Equal(t, []string{shown, shown}, []string{r.Hits[0].Line, r.Hits[1].Line}, name)
			require.Regexp(t, `(?m)/entries/b.json\t-\t.*\n.*/entries/a.json\tdo it\t`, string(r.Table()), name)
		}
	})
	for _, name := range []string{"", "a", "./a", "/a\x00b"} {
		_, err := NewTouched(name)
		require.ErrorContains(t, err, "not an absolute path", name)
	}
}

// TestTouchedByResults searches for files that results name. A hit is the call of the result, if
// there is one, and counts once if the call names the file too.
func TestTouchedByResults(t *testing.T) {
	t.Setenv("HOME", "/nowhere")
	sessiontest.Page(t, "testdata/results.txt", func(t *testing.T, _, lines, want string) {
		for row := range strings.Lines(want) {
			file, hits, _ := strings.Cut(row, " →")
			var got []string
			for _, h := range touching(t, file, sessiontest.Header+lines+"\n").Hits {
				got = append(got, h.Entry+" "+h.Line)
			}
			require.Equal(t, strings.TrimSpace(hits), strings.Join(got, ", "), file)
		}
	})
}

// pathsFound returns how many lines of a text a Touched's needle finds, in a session of /home/dev.
func pathsFound(t *testing.T, file, text string) int {
	m, err := NewTouched(file)
	require.NoError(t, err)
	n, _, err := m.Needle("", func() (rawjson.Value, error) { return rawjson.Value(`{"type":"session","cwd":"/home/dev"}`), nil })
	require.NoError(t, err)
	var s scanner
	found, err := s.find(context.Background(), strings.NewReader(text), int64(len(text)), n)
	require.NoError(t, err)
	return len(found)
}

// TestMentionsAreNoPaths: a session that has a file's name, but no path to that file, is not indexed for it.
func TestMentionsAreNoPaths(t *testing.T) {
	for text, want := range map[string]int{
		`"main.go"`: 1, `"./main.go"`: 1, `"/home/dev/main.go"`: 1, `"\/home\/dev\/main.go:3"`: 1, `"\u002fhome/dev/ma\u0069n.go\u003a3"`: 1,
		`"/home/dev/x/../main.go/y"`: 1, `"../dev\u002fmain.go"`: 1, `"the text" "main.go" "more"`: 1, `"see main.go" "main.go"`: 1,

		`"see main.go"`: 0, `"main.go "`: 0, `"domain.go"`: 0, `"main.gos"`: 0, `"x/main.go"`: 0, `"/etc/main.go:3: no"`: 0, `"a\nmain.go:3\n"`: 0,
		`"\"main.go\""`: 0, `"https://x/main.go"`: 0, `main.go`: 0, `"main.go`: 0, `"` + strings.Repeat("x", message.MaxPath) + `/main.go"`: 0,
		`"main.go/` + strings.Repeat("x", message.MaxPath) + `"`: 0, `"main.go/\q"`: 0, `"` + strings.Repeat(`\`, 2*message.MaxPath) + `main.go"`: 0,
	} {
		require.Equal(t, want, pathsFound(t, "/home/dev/main.go", text+"\n"), "%s", text)
	}
}

// TestPathsAreFound: wherever a path is in a file, in whatever way it is written and however the file is cut into chunks.
func TestPathsAreFound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	noise := strings.Repeat(`{"text":"some \\\" text QQ/RR","QQ":["WW","RR"]}`+"\n", 2*chunkSize/40)
	paths, tried := rounds(1500), 0
	for n := range paths {
		base := randomText(rnd, 6)
		if strings.ContainsAny(base, "/:") || base == "." || base == ".." || newNeedle(&word{text: base, exact: true}) == nil {
			continue
		}
		tried++
		arg := []string{"%s", "./%s", "/home/dev/%s", "%s/below", "../dev/%s:1-2", "x/../%s"}[rnd.IntN(6)]
		arg = fmt.Sprintf(arg, base)
		var line bytes.Buffer
		fmt.Fprintf(&line, `{"path":"%s"}`+"\n", spell(rnd, &word{text: arg, exact: true}, []int{0, 20, 100}[rnd.IntN(3)]))
		before, after := rnd.IntN(300), rnd.IntN(300)
		if n%50 == 0 { // around the end of a chunk
			before, after = chunkSize-20+rnd.IntN(40)-line.Len(), 1000
		}
		before = strings.LastIndexByte(noise[:before+1], '\n') + 1
		text := noise[:before] + strings.Repeat(" ", rnd.IntN(40)) + line.String() + noise[:after]
		require.Equal(t, 1, pathsFound(t, path.Join("/home/dev", base), text), "%q written %s", base, line.String())
	}
	require.Greater(t, tried, paths/3)
}

// spell writes a word as JSON may write it: some characters in another case, some escaped.
func spell(rnd *rand.Rand, w *word, escapes int) []byte {
	var out []byte
	for _, r := range w.text {
		if all := variants(r, w.exact); len(all) > 0 {
			r = all[rnd.IntN(len(all))]
		}
		units := utf16.Encode([]rune{r})
		switch short := map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\n': `\n`, '\t': `\t`}[r]; {
		case rnd.IntN(100) < escapes || r < ' ' && short == "":
			for _, u := range units {
				out = fmt.Appendf(out, []string{`\u%04x`, `\u%04X`}[rnd.IntN(2)], u)
			}
		case short != "" && (r != '/' || rnd.IntN(2) == 0):
			out = append(out, short...)
		default:
			out = append(out, string(r)...)
		}
	}
	return out
}

// alphabet has letters whose cases differ in length, in their first byte or not at all, and what JSON escapes.
var alphabet = []rune("abcxyzKS 09-_.:\"\\/\n\tàÉßẞſKѐРрДдΣσςȺⱥÅÅİıǅǆ日本─😀𐐀𐐨\u0001\u007f")

// randomText draws at most so many characters of the alphabet.
func randomText(rnd *rand.Rand, most int) string {
	text := make([]rune, 1+rnd.IntN(most))
	for i := range text {
		text[i] = alphabet[rnd.IntN(len(alphabet))]
	}
	return string(text)
}

// rounds returns how often a random test runs.
func rounds(n int) int {
	if sessiontest.UnderRace {
		return n / 10
	}
	return n
}

// TestNeedleMissesNothing: wherever a word is in a file, in whatever way it is written and however the file is cut into
// chunks, its needle is found on that line.
func TestNeedleMissesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := bytes.Repeat([]byte(`some text \n \u00e9 \\u0061 ab xy K─`+"\n"), 3*chunkSize/40)
	var s scanner
	words, withNeedle := rounds(1500), 0
	for n := range words {
		text := randomText(rnd, 8)
		if n%2 == 0 {
			text = strings.Map(unicode.ToLower, text)
		}
		w := newWord(text)
		needle := newNeedle(w)
		if needle == nil {
			continue
		}
		withNeedle++
		written := spell(rnd, w, []int{0, 20, 100}[rnd.IntN(3)])
		size, at := 400, rnd.IntN(300)
		if n%50 == 0 { // around the end of a chunk
			size, at = chunkSize+1000, chunkSize-20+rnd.IntN(40)
		}
		file := bytes.Clone(noise[:size])
		file = append(append(file[:at:at], written...), noise[at:size]...)
		found, err := s.find(context.Background(), bytes.NewReader(file), int64(len(file)), needle)
		require.NoError(t, err)
		isFound := false
		for _, c := range found {
			require.Less(t, c.from, c.to)
			isFound = isFound || c.from < int64(at+len(written)) && c.to > int64(at)
		}
		require.True(t, isFound, "%q written %q at %d", w.text, written, at)
		require.True(t, w.isIn([]byte("x "+text)), "%q", text)
	}
	require.Greater(t, withNeedle, words*2/3)
}

// TestNeedlesAreSelective: words that people look for do not make every line a candidate.
func TestNeedlesAreSelective(t *testing.T) {
	text := []byte(`{"type":"message","text":"a\nb \u001b[0m \u00e9 \\u007a the quick brown fox"}` + "\n")
	var s scanner
	for _, w := range []string{"zanzibar", "Quick brown dog", "日本", "straße", "ёлка", "a/b", `"x"`, "fix\\"} {
		found, err := s.find(context.Background(), bytes.NewReader(text), int64(len(text)), newNeedle(newWord(w)))
		require.NoError(t, err)
		require.Empty(t, found, w)
	}
}

// TestPairs: each way to look for a pair finds the first place that has it.
func TestPairs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		b := bytes.Repeat([]byte{'x'}, rnd.IntN(600))
		for i := range rnd.IntN(len(b) + 1) { // the rest has no pair
			b[i] = "aAbB\\u\x80\xff"[rnd.IntN(8)]
		}
		if rnd.IntN(2) == 0 {
			slices.Reverse(b)
		}
		p := newPair('a', 0xDF, 'b', []byte{0xFF, 0xDF, 0}[rnd.IntN(3)])
		from := rnd.IntN(len(b) + 1)
		want := from
		for want < len(b) && !p.at(b, want) {
			want++
		}
		require.Equal(t, want, p.next(b, from), "%q", b)
		if want+1 < len(b) {
			i := p.nextInWords(b, from)
			require.LessOrEqual(t, i, want)
			require.True(t, want-i < 8 || i+9 > len(b), "it stops where a pair is")
		}
	}
}
