package search

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

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

// TestNeedleMissesNothing: wherever a word is in a file, in whatever way it is written and however the file is cut into
// chunks, its needle is found on that line.
func TestNeedleMissesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := bytes.Repeat([]byte(`some text \n \u00e9 \\u0061 ab xy K─`+"\n"), 3*chunkSize/40)
	var s scanner
	withNeedle := 0
	words := 1500
	if sessiontest.UnderRace {
		words = 150
	}
	for n := range words {
		var text []rune
		for range 1 + rnd.IntN(8) {
			text = append(text, alphabet[rnd.IntN(len(alphabet))])
		}
		if n%2 == 0 {
			for i, r := range text {
				text[i] = unicode.ToLower(r)
			}
		}
		w := newWord(string(text))
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
		var scratch []byte
		require.GreaterOrEqual(t, w.index(append([]byte("x "), string(text)...), &scratch), 0, "%q", text)
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
		b := make([]byte, rnd.IntN(200))
		for i := range b {
			b[i] = "aAbB\\u\x80\xff"[rnd.IntN(8)]
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
