package main

import (
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPicture: the picture of README.md shows the transcript. If it does not, run scripts/picture.
func TestPicture(t *testing.T) {
	text, err := os.ReadFile("../../" + cookbook)
	require.NoError(t, err)
	lines, err := transcript(string(text))
	require.NoError(t, err)
	require.Greater(t, len(lines), 20)
	picture, err := os.ReadFile("../../docs/picture.svg")
	require.NoError(t, err)
	require.Equal(t, draw(lines), string(picture))
}

// TestDraw: a picture is XML with each character of the lines.
func TestDraw(t *testing.T) {
	long := strings.Repeat("x", columns) + "y"
	shown := ""
	for d := xml.NewDecoder(strings.NewReader(draw([]string{"$ echo '<&>'  ", "<&>", "a\tb", "", long}))); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok {
			shown += string(text)
		}
	}
	_, shown, _ = strings.Cut(shown, "white-space:pre}")
	for _, want := range []string{"$ echo '<&>'\n", "\n<&>\n", "\na       b\n", "\n" + long[:columns] + "\ny\n"} {
		require.Contains(t, shown, want)
	}
	_, err := transcript("# nothing\n")
	require.Error(t, err)
}
