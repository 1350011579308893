package main

import (
	"errors"
	"fmt"
	"html"
	"strings"
)

// columns is the width of the terminal; longer lines go on in the next one.
const columns = 96

// Sizes in pixels: a character of the usual monospace fonts is 0.6 of their size wide.
const (
	fontSize   = 14
	charWidth  = 8.4
	lineHeight = 19
	margin     = 16
)

// transcript returns the lines of the first console block of a Markdown text.
func transcript(text string) ([]string, error) {
	_, after, ok := strings.Cut(text, "\n```console\n")
	block, _, closed := strings.Cut(after, "\n```\n")
	if !ok || !closed {
		return nil, errors.New("there is no transcript in " + cookbook)
	}
	return strings.Split(block, "\n"), nil
}

// draw returns the lines as an SVG image. It names no time, no version and no font that must be there, so that the same
// lines are the same bytes, everywhere.
func draw(lines []string) string {
	var rows []string
	for _, line := range lines {
		rows = append(rows, wrap(strings.TrimRight(line, " "))...)
	}
	width := margin*2 + charWidth*columns
	height := margin*2 + lineHeight*len(rows)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %[1]f %[2]d" role="img">
<title>A shell in a mount of sessionfs</title>
<style>text{font:%[3]dpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#c9d1d9;white-space:pre}.p{fill:#7ee787}.c{fill:#fff;font-weight:600}</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, width, height, fontSize)
	for i, row := range rows {
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", margin, margin+lineHeight*i+fontSize, colour(row))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// colour makes what was typed stand out.
func colour(row string) string {
	if typed, ok := strings.CutPrefix(row, "$ "); ok {
		return `<tspan class="p">$ </tspan><tspan class="c">` + html.EscapeString(typed) + `</tspan>`
	}
	return html.EscapeString(row)
}

// tabWidth is that of a terminal.
const tabWidth = 8

// wrap returns a line as the rows that a terminal shows.
func wrap(line string) (rows []string) {
	var row []rune
	for _, r := range line {
		n := 1
		if r == '\t' {
			r, n = ' ', tabWidth-len(row)%tabWidth
		}
		for range n {
			if len(row) == columns {
				rows = append(rows, string(row))
				row = nil
			}
			row = append(row, r)
		}
	}
	return append(rows, string(row))
}
