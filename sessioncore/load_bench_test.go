package sessioncore

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/jsonl"
)

// prose makes text without anything to escape.
func prose(rnd *rand.Rand, size int) []byte {
	text := make([]byte, size)
	for i := range text {
		text[i] = "etaoin shrdlu cmfwyp vbgkqjxz "[rnd.IntN(30)]
	}
	return text
}

// code makes text with an escape every 16 bytes or so and now and then characters beyond ASCII, as source
// code and tool output have inside a JSON string.
func code(rnd *rand.Rand, size int) []byte {
	var text []byte
	for len(text) < size {
		text = append(text, strings.Repeat(`\t`, rnd.IntN(5))...)
		text = append(text, prose(rnd, 20+rnd.IntN(50))...)
		if rnd.IntN(7) == 0 {
			text = append(text, `\"word\"`...)
		}
		if rnd.IntN(60) == 0 {
			text = append(text, "──────"...)
		}
		text = append(text, `\n`...)
	}
	return text
}

// textAt returns a piece of text that cuts no escape and no character.
func textAt(text []byte, at, size int) []byte {
	piece := text[at : at+size]
	for len(piece) > 0 && (text[at] >= 0x80 || at > 0 && text[at-1] == '\\') {
		at, piece = at+1, piece[1:]
	}
	for len(piece) > 0 && (piece[len(piece)-1] >= 0x80 || piece[len(piece)-1] == '\\') {
		piece = piece[:len(piece)-1]
	}
	return piece
}

// longSessions are what the benchmarks read: the texts of their entries.
var longSessions = []struct {
	name string
	text func(rnd *rand.Rand, size int) []byte
}{{"prose", prose}, {"code", code}}

// writeLongSession writes a session of n entries, about bytes long, with log-normal line sizes (median
// 0.4 of the mean), as real ones have.
func writeLongSession(t testing.TB, n int, bytes int64, text func(rnd *rand.Rand, size int) []byte) string {
	file := filepath.Join(t.TempDir(), "long.jsonl")
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	pool := text(rnd, 4<<20)
	mean := float64(bytes) / float64(n)
	sigma := math.Sqrt(2 * math.Log(1/0.4))
	fmt.Fprintln(f, `{"type":"session","version":3,"id":"bench","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/home/dev/project"}`)
	parent := "null"
	for i := range n {
		size := int(0.4 * mean * math.Exp(sigma*rnd.NormFloat64()))
		size = min(max(size-260, 1), len(pool)/2)
		at := rnd.IntN(len(pool) - size)
		id := fmt.Sprintf(`"%08x"`, uint32(i)*2654435761)
		role := [...]string{"user", "assistant", "toolResult"}[i%3]
		fmt.Fprintf(f, `{"type":"message","id":%s,"parentId":%s,"timestamp":"2026-01-05T09:%02d:%02d.%03dZ","message":{"role":"%s","content":[{"type":"text","text":"%s\n\"quoted\""}],"timestamp":1767603600000}}`+"\n",
			id, parent, i/60000%60, i/1000%60, i%1000, role, textAt(pool, at, size))
		parent = id
	}
	return file
}

// BenchmarkIndex is the first look at a session of 233 MB and 20,000 entries.
func BenchmarkIndex(b *testing.B) {
	for _, session := range longSessions {
		b.Run(session.name, func(b *testing.B) {
			file := writeLongSession(b, 20_000, 233<<20, session.text)
			f, err := os.Open(file)
			require.NoError(b, err)
			defer f.Close()
			st, err := f.Stat()
			require.NoError(b, err)
			b.SetBytes(st.Size())
			b.ReportAllocs()
			for b.Loop() {
				x := newIndex(nil)
				_, err := jsonl.Load(context.Background(), f, jsonl.Position{}, st.Size(), x.add)
				require.NoError(b, err)
				require.Len(b, x.records, 20_000)
				require.Empty(b, x.problems)
			}
		})
	}
}
