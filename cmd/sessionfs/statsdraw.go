package main

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore/costs"
)

const (
	// tableWidth is the width of a table where no terminal tells its own, and maxBar that of its longest bar, in characters.
	tableWidth = 80
	maxBar     = 40
	// minBar is for how many characters of a bar names are cut.
	minBar = 10
)

// cells returns the columns of a line behind the name, as text.
func (s *stats) cells(g *costs.Group) []string {
	cells := []string{fmt.Sprint(g.Sessions()), fmt.Sprint(g.AssistantMessages)}
	if s.by != byTool {
		cells = append(cells, short(float64(g.TotalTokens)), dollars(&g.Sum))
	}
	return cells
}

func (s *stats) titles() []string {
	if s.by == byTool {
		return []string{"sessions", "calls"}
	}
	return []string{"sessions", "answers", "tokens", "cost"}
}

// dollars returns a cost: - where nobody knows any, with a + where not all is known.
func dollars(sum *costs.Sum) string {
	switch {
	case sum.Cost.IsZero():
		return "-"
	case sum.Unpriced > 0:
		return fmt.Sprintf("$%.2f+", float64(sum.Cost.Total))
	}
	return fmt.Sprintf("$%.2f", float64(sum.Cost.Total))
}

// short returns a number in at most five characters.
func short(n float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if n < 999.5 || unit == "G" {
			if unit != "" && n < 9.95 {
				return fmt.Sprintf("%.1f%s", n, unit)
			}
			return fmt.Sprintf("%.0f%s", n, unit)
		}
		n /= 1000
	}
	return ""
}

// table returns the lines with bars, which are made of blocks: a whole one, and parts of one by their length.
func (s *stats) table(groups []*costs.Group, width int, blocks []string) []byte {
	titles := s.titles()
	rows := [][]string{append([]string{s.by}, titles...)}
	for _, g := range slices.Concat(groups, s.total.All()) {
		rows = append(rows, append([]string{s.label(g)}, s.cells(g)...))
	}
	room := width - minBar - 2*len(titles)
	for i := range titles {
		room -= widest(rows, i+1)
	}
	for _, row := range rows {
		row[0] = s.cut(row[0], max(room, minBar))
	}
	bar := min(maxBar, minBar+max(room, minBar)-widest(rows, 0)-2)
	share := s.shares(groups)
	var out bytes.Buffer
	for i, row := range rows {
		fmt.Fprintf(&out, "%-*s", widest(rows, 0), row[0])
		for k, cell := range row[1:] {
			fmt.Fprintf(&out, "  %*s", widest(rows, k+1), cell)
		}
		if i > 0 && i <= len(groups) {
			if drawn := drawBar(share[i-1]*float64(bar), blocks); drawn != "" {
				out.WriteString("  " + drawn)
			}
		}
		out.WriteByte('\n')
	}
	for _, note := range s.notes() {
		out.WriteString(note + "\n")
	}
	return out.Bytes()
}

// shares returns how long the bars are: that of the largest group is 1.
func (s *stats) shares(groups []*costs.Group) []float64 {
	value, most := s.measure().of, 0.0
	for _, g := range groups {
		most = max(most, value(g))
	}
	shares := make([]float64, len(groups))
	for i, g := range groups {
		if most > 0 {
			shares[i] = value(g) / most
		}
	}
	return shares
}

func widest(rows [][]string, column int) (width int) {
	for _, row := range rows {
		width = max(width, utf8.RuneCountInString(row[column]))
	}
	return width
}

// cut shortens a name: the title of a session at its end, any other one at its beginning.
func (s *stats) cut(name string, width int) string {
	if r := []rune(name); s.by == bySession && len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return cutLeft(name, width)
}

// cutLeft shortens a name at its beginning, as the ends of paths and models tell more.
func cutLeft(name string, width int) string {
	if r := []rune(name); len(r) > width {
		return "…" + string(r[len(r)-width+1:])
	}
	return name
}

func drawBar(length float64, blocks []string) string {
	parts := int(length*float64(len(blocks)) + 0.5)
	bar := strings.Repeat(blocks[0], parts/len(blocks))
	if part := parts % len(blocks); part > 0 {
		bar += blocks[part]
	}
	return bar
}

// svg returns the bars as a picture that loads nothing, a line for each group.
func (s *stats) svg(groups []*costs.Group) []byte {
	const line, left, bar, width = 22, 320, 360, 800
	share, what := s.shares(groups), s.measure().name
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" role="img" font-family="sans-serif" font-size="13">`+"\n",
		width, line*(len(groups)+len(s.notes())+2))
	fmt.Fprintf(&out, "<title>%s by %s</title>\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", what, s.by)
	fmt.Fprintf(&out, `<text x="%d" y="%d" font-weight="bold">%s by %s</text>`+"\n", left, line-6, what, s.by)
	for i, g := range groups {
		y := (i + 1) * line
		length := share[i] * bar
		cells := s.cells(g)
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+15, html.EscapeString(s.cut(s.label(g), 40)))
		fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="#4a7ab5"/>`, left, y+2, length, line-4)
		fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s</text>`+"\n", left+length+6, y+15, cells[len(cells)-1])
	}
	for i, note := range s.notes() {
		fmt.Fprintf(&out, `<text x="%d" y="%d">%s</text>`+"\n", 8, (len(groups)+i+2)*line, html.EscapeString(note))
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}
