package mcp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// answered returns the part of a text behind a cursor, written in pieces of a size.
func answered(text, from string, limit, piece int) (part, next string, err error) {
	c, err := parseCursor(from)
	if err != nil {
		return "", "", err
	}
	p := newPage(context.Background(), c, limit)
	for rest := text; rest != ""; {
		n, err := p.Write([]byte(rest[:min(piece, len(rest))]))
		if err != nil {
			break
		}
		rest = rest[n:]
	}
	return p.end()
}

// texts are texts to be cut: of lines that differ, of equal ones, of one line, of wide characters, and of none.
func texts() map[string]string {
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, "%d %s\n", i, strings.Repeat("x", i%37))
	}
	return map[string]string{
		"lines":  lines.String(),
		"equal":  strings.Repeat("the same\n", 900),
		"one":    strings.Repeat("y", 5000),
		"wide":   strings.Repeat("潮汐 ", 700) + "\n",
		"broken": strings.Repeat("\x80", 3000),
		"none":   "",
		"torn":   lines.String() + "end",
	}
}

// TestPages: the answers together are the text, without a gap or an overlap, whatever the sizes of the writes.
func TestPages(t *testing.T) {
	const limit = 700
	for name, text := range texts() {
		for _, piece := range []int{1, 13, 4096} {
			got := ""
			next := ""
			for {
				part, following, err := answered(text, next, limit, piece)
				require.NoError(t, err, name)
				require.LessOrEqual(t, len(part), limit, name)
				got += part
				next = following
				if next == "" {
					break
				}
				require.NotEmpty(t, part, name)
				if name == "lines" {
					require.True(t, strings.HasSuffix(part, "\n"), name)
				}
			}
			require.Equal(t, text, got, "%s in pieces of %d", name, piece)
		}
	}
}

// TestPagesMove: where lines were added before the place of a cursor, the answer goes on where it stopped; where the lines
// before it are others, that is said.
func TestPagesMove(t *testing.T) {
	text := texts()["lines"]
	first, next, err := answered(text, "", 2000, 4096)
	require.NoError(t, err)
	for _, piece := range []int{1, 4096} {
		part, _, err := answered("new\nnew as well\n"+text, next, 100_000, piece)
		require.NoError(t, err)
		require.Equal(t, text, first+part)
		part, _, err = answered(text+"more\n", next, 100_000, piece)
		require.NoError(t, err)
		require.Equal(t, text+"more\n", first+part)
		for _, other := range []string{strings.Repeat("other\n", 9000), strings.Replace(first, "7", "8", -1) + text[len(first):], text[:1000], ""} {
			_, _, err = answered(other, next, 100_000, piece)
			require.ErrorIs(t, err, errMoved)
		}
	}
}

// TestCursors: only a cursor of an answer is one.
func TestCursors(t *testing.T) {
	for _, text := range []string{
		"0-0000000000000000", "x", "-1-0000000000000000", "1", "1-", "1-zz", "1-1", "01-0000000000000001", "99999999999999999999-0000000000000001",
		"1-0000000000000001 ", "1-000000000000000A",
	} {
		_, err := parseCursor(text)
		require.ErrorContains(t, err, "cursor must be one that an answer has", text)
	}
	c, err := parseCursor("58-0123456789abcdef")
	require.NoError(t, err)
	require.Equal(t, cursor{58, 0x0123456789abcdef}, c)
}
