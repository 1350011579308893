package view

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"sessionfs/sessioncore"
)

// Branch is a branch of a session.
type Branch struct {
	Session *sessioncore.Snapshot
	End     sessioncore.Entry // NoEntry for the branch without entries
}

const (
	// contextLines is how many lines are shown around those that differ.
	contextLines = 3
	// maxCompared is how many bytes of a turn are compared line by line. A longer one is shown whole.
	maxCompared = 4 << 20
)

// Diff compares two branches as diff -u does, and calls f for each line, with its end: "-" before lines
// of a alone, "+" before lines of b alone, "@@" in place of common ones. Turns are compared by their
// texts, without times and ids, labels and settings; a turn that differs is compared line by line with
// that of the same speaker. Diff returns whether there is a difference.
func Diff(ctx context.Context, a, b Branch, f func(line []byte) error) (differs bool, err error) {
	d := differ{ctx: ctx, f: f}
	for i, branch := range []Branch{a, b} {
		if d.sides[i], err = newSide(ctx, branch); err != nil {
			return false, err
		}
	}
	x, y := d.sides[0].turns, d.sides[1].turns
	sum := func(t turn) uint64 { return t.sum }
	runs := common(keysOf(x, sum), keysOf(y, sum))
	if n := runs[0].n; n == len(x) && n == len(y) {
		return false, nil
	}
	i, j := 0, 0
	for _, same := range runs {
		d.changed(x[i:same.a], y[j:same.b])
		if i, j = same.a+same.n, same.b+same.n; same.n > 0 {
			d.line("@@ ", fmt.Sprintf("in common: %s, to %s @@", counted(same.n, "turn"), x[i-1].title))
		}
	}
	return true, d.err
}

// keysOf returns the keys by which turns are compared.
func keysOf[T comparable](turns []turn, key func(turn) T) []T {
	keys := make([]T, len(turns))
	for i, t := range turns {
		keys[i] = key(t)
	}
	return keys
}

// side is one of the branches that are compared.
type side struct {
	*transcript
	turns []turn
}

// turn is a turn of a branch.
type turn struct {
	sum     uint64 // of the speaker and the text
	who     string
	title   string // its heading
	entries []shownEntry
	size    int64 // in bytes
}

func newSide(ctx context.Context, branch Branch) (*side, error) {
	t, err := newTranscript(ctx, branch.Session, branch.End, Links{Blobs: "blobs/"})
	if err != nil {
		return nil, err
	}
	s := &side{transcript: t}
	var sum maphash.Hash
	sum.SetSeed(hashSeed)
	for _, shown := range t.entries {
		blocks, err := t.blocksOf(shown)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if blocks.flags&inTurn == 0 {
			continue // a note
		}
		if shown.begins {
			who, heading := blocks.heading.line[0].text, t.writer.append(nil, blocks.heading)
			s.turns = append(s.turns, turn{who: who, title: strings.TrimSpace(string(heading[len("\n## "):]))})
			sum.Reset()
			sum.WriteString(who)
		}
		text := bareWriter.append(nil, blocks.body...)
		sum.Write(text)
		last := &s.turns[len(s.turns)-1]
		last.sum, last.size, last.entries = sum.Sum64(), last.size+int64(len(text)), append(last.entries, shown)
	}
	return s, nil
}

// bareWriter writes blocks to be compared.
var bareWriter = markdownWriter{links: Links{Blobs: "blobs/"}, bare: true}

// differ writes a difference.
type differ struct {
	ctx   context.Context
	sides [2]*side
	f     func([]byte) error
	err   error // the first
}

func (d *differ) line(sign, text string) {
	if d.err == nil {
		d.err = d.ctx.Err()
	}
	if d.err == nil {
		d.err = d.f([]byte(sign + text + "\n"))
	}
}

// signs are those of the sides.
var signs = [2]string{"-", "+"}

// changed writes the turns between two that are the same, beside each other where they are of one speaker.
func (d *differ) changed(x, y []turn) {
	who := func(t turn) string { return t.who }
	i, j := 0, 0
	for _, same := range common(keysOf(x, who), keysOf(y, who)) {
		for ; i < same.a; i++ {
			d.whole(0, &x[i])
		}
		for ; j < same.b; j++ {
			d.whole(1, &y[j])
		}
		for range same.n {
			d.pair(&x[i], &y[j])
			i, j = i+1, j+1
		}
	}
}

// whole writes a turn that only one of them has.
func (d *differ) whole(on int, t *turn) {
	d.line(signs[on], "## "+t.title)
	for line := range d.linesOf(on, t) {
		d.line(signs[on], line)
	}
}

// linesOf reads the lines of a turn.
func (d *differ) linesOf(on int, t *turn) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, shown := range t.entries {
			blocks, err := d.sides[on].blocksOf(shown)
			if d.err = cmp.Or(d.err, err); d.err != nil {
				return
			}
			for _, line := range linesOf(strings.TrimSuffix(string(bareWriter.append(nil, blocks.body...)), "\n")) {
				if !yield(line) {
					return
				}
			}
		}
	}
}

func (d *differ) each(sign string, lines []string) {
	for _, line := range lines {
		d.line(sign, line)
	}
}

// pair writes two turns of one speaker.
func (d *differ) pair(x, y *turn) {
	if x.size+y.size > maxCompared {
		d.whole(0, x)
		d.whole(1, y)
		return
	}
	if x.title == y.title {
		d.line(" ", "## "+x.title)
	} else {
		d.line("-", "## "+x.title)
		d.line("+", "## "+y.title)
	}
	a, b := slices.Collect(d.linesOf(0, x)), slices.Collect(d.linesOf(1, y))
	i, j := 0, 0
	for _, same := range common(a, b) {
		d.each("-", a[i:same.a])
		d.each("+", b[j:same.b])
		i, j = same.a+same.n, same.b+same.n
		shared := a[same.a:i]
		before, after := contextLines, contextLines
		if same.a == 0 {
			before = 0
		}
		if i == len(a) && j == len(b) {
			after = 0
		}
		if left := len(shared) - before - after; left > 1 {
			d.each(" ", shared[:before])
			d.line("@@ ", fmt.Sprintf("in common: %s @@", counted(left, "line")))
			shared = shared[len(shared)-after:]
		}
		d.each(" ", shared)
	}
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
