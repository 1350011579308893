package view

import (
	"bufio"
	"bytes"
	"io"
	"regexp"

	"github.com/rivo/uniseg"
)

// Screen is the output of a command with a text for people on a terminal, or in its pager.
type Screen struct {
	*bufio.Writer
	People  bool // it is a terminal
	Colours bool // the terminal gets colours
}

// The colours of text on a terminal. A match and its path have grep's.
const (
	ColourMatch = "\x1b[1;31m"
	ColourPath  = "\x1b[35m"
	ColourTitle = "\x1b[1m"
	ColourDim   = "\x1b[2m"
	ColourGreen = "\x1b[32m"
	ColourRed   = "\x1b[31m"
	ColourName  = "\x1b[33m"
	ColourEnd   = "\x1b[0m"
)

// Coloured returns text in a colour, "" for none, where the screen has colours.
func (s *Screen) Coloured(colour, text string) string {
	if !s.Colours || colour == "" || text == "" {
		return text
	}
	return colour + text + ColourEnd
}

// maxColoured is how much of a line of a transcript is coloured, in bytes; the rest of a longer one
// is coloured by itself.
const maxColoured = 128 << 10

// WriteTranscript copies transcript.md with colours, where the screen has any, line by line.
func (s *Screen) WriteTranscript(in io.Reader) error {
	if !s.Colours {
		_, err := io.CopyBuffer(struct{ io.Writer }{s}, in, make([]byte, maxColoured))
		return err
	}
	r := bufio.NewReaderSize(in, maxColoured)
	var block fence
	for {
		line, err := r.ReadSlice('\n')
		text := bytes.TrimSuffix(line, []byte("\n"))
		coloured := s.Coloured(block.colourOf(text), string(text))
		_, failed := s.WriteString(coloured + string(line[len(text):]))
		if failed != nil {
			return failed
		}
		if err == io.EOF {
			return nil
		} else if err != nil && err != bufio.ErrBufferFull {
			return err
		}
	}
}

// fence is the code block around a line.
type fence struct {
	marks  []byte // its first line's, nil outside
	isDiff bool
}

// fenceLine matches the first line of a code block, and its last line if nothing follows the marks.
var fenceLine = regexp.MustCompile("^ *(`{3,}|~{3,})(.*)$")

// aside matches the lines of a transcript that nobody said aloud: results, notes, thoughts.
var aside = regexp.MustCompile(`^(?:\*\*Result\*\*|\*[^* ]|> )`)

// diffColours are the colours of the lines of a diff by their first characters.
var diffColours = map[byte]string{'+': ColourGreen, '-': ColourRed, '@': ColourPath}

// colourOf returns the colour of the next line, "" for none, and notes where a code block begins or ends.
func (f *fence) colourOf(line []byte) string {
	if f.marks != nil {
		return f.colourInside(line)
	}
	m := fenceLine.FindSubmatch(line)
	switch {
	case m != nil:
		language := m[2]
		f.marks = bytes.Clone(m[1])
		f.isDiff = string(language) == "diff"
		return ColourDim
	case bytes.HasPrefix(line, []byte("#")):
		return ColourTitle
	case aside.Match(line):
		return ColourDim
	}
	return ""
}

// colourInside is colourOf for a line of a code block, or its last line.
func (f *fence) colourInside(line []byte) string {
	m := fenceLine.FindSubmatch(line)
	isEnd := m != nil && bytes.HasPrefix(m[1], f.marks) && len(bytes.TrimSpace(m[2])) == 0
	if isEnd {
		f.marks = nil
		return ColourDim
	}
	if f.isDiff && len(line) > 0 {
		return diffColours[line[0]]
	}
	return ""
}

// CutAt shortens a text that has more columns than width at its end, where it gets an ellipsis. It is "" for a width
// of 0.
func CutAt(text string, width int) string {
	switch {
	case uniseg.StringWidth(text) <= width:
		return text
	case width <= 0:
		return ""
	}
	columns := 0
	for g := uniseg.NewGraphemes(text); g.Next(); {
		columns += g.Width()
		if columns >= width {
			from, _ := g.Positions()
			return text[:from] + "…"
		}
	}
	return text
}
