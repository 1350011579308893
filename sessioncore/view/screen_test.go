package view

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestColours: a transcript is coloured by line, wherever code begins and ends, and nothing of it is lost.
func TestColours(t *testing.T) {
	uncoloured := strings.NewReplacer("[dim]", ColourDim, "[red]", ColourRed, "[green]", ColourGreen, "[bold]", ColourTitle, "[/]", ColourEnd)
	for in, want := range map[string]string{
		"# a\n\n*note*\n*\n* item\n**`x`**":                  "[bold]# a[/]\n\n[dim]*note*[/]\n*\n* item\n**`x`**",
		"```diff\n+a\n\n-b\n c\n```\n+d\n":                   "[dim]```diff[/]\n[green]+a[/]\n\n[red]-b[/]\n c\n[dim]```[/]\n+d\n",
		"````\n```diff\n+a\n# x\n````\n# y\n":                "[dim]````[/]\n```diff\n+a\n# x\n[dim]````[/]\n[bold]# y[/]\n",
		"~~~\n```\n~~~\n> ":                                  "[dim]~~~[/]\n```\n[dim]~~~[/]\n[dim]> [/]",
		"> " + strings.Repeat("x", maxColoured-2) + "y\n> z": "[dim]> " + strings.Repeat("x", maxColoured-2) + "[/]y\n[dim]> z[/]",
		"": "",
	} {
		var out strings.Builder
		to := &Screen{Writer: bufio.NewWriter(&out), People: true, Colours: true}
		require.NoError(t, to.WriteTranscript(strings.NewReader(in)))
		require.NoError(t, to.Flush())
		require.Equal(t, uncoloured.Replace(want), out.String(), in)
	}
}

// TestCutAt: characters that are two columns wide are not cut in the middle.
func TestCutAt(t *testing.T) {
	require.Equal(t, "", CutAt("text", 0))
	require.Equal(t, "漢…", CutAt("漢字", 3))
}
