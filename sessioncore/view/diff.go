package view

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"

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

// Diff calls f for each line, with its end, of how b differs from a, as diff -u shows it: "-" before what only a has, "+" before
// what only b has, "@@" before what they have in common. Turns are compared by what was said and done in them, without times and
// ids, labels and settings, and those that differ line by line with the turn of the same speaker. It returns whether there is a
// difference.
func Diff(ctx context.Context, a, b Branch, f func(line []byte) error) (differs bool, err error) {
	d := differ{ctx: ctx, f: f}
	for i, branch := range []Branch{a, b} {
		if d.sides[i], err = newSide(ctx, branch); err != nil {
			return false, err
		}
	}
	x, y := d.sides[0], d.sides[1]
	same := common(sums(x.turns), sums(y.turns))
	if len(same) == len(x.turns) && len(same) == len(y.turns) {
		return false, nil
	}
	at := [2]int{}
	for i := 0; i <= len(same); {
		to, shared := [2]int{len(x.turns), len(y.turns)}, 0
		if i < len(same) {
			to = same[i]
		}
		d.changed(x.turns[at[0]:to[0]], y.turns[at[1]:to[1]])
		for at = to; i < len(same) && same[i] == at; i++ {
			at, shared = [2]int{at[0] + 1, at[1] + 1}, shared+1
		}
		if shared == 0 {
			break
		}
		d.line("@@ ", fmt.Sprintf("in common: %s, to %s @@", counted(shared, "turn"), x.turns[at[0]-1].title))
	}
	return true, d.err
}

// side is one of the branches that are compared.
type side struct {
	*transcript
	turns []turn
}

// turn is a turn of a branch.
type turn struct {
	sum     uint64 // of who speaks and what is said
	who     string
	title   string // its heading
	entries []shownEntry
	size    int64 // in bytes
}

func sums(turns []turn) (list []uint64) {
	for _, t := range turns {
		list = append(list, t.sum)
	}
	return list
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
			s.turns = append(s.turns, turn{who: who, title: string(bytes.TrimSpace(heading[len("\n## "):]))})
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

// bareWriter writes what is compared.
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
	who := func(turns []turn) (list []string) {
		for _, t := range turns {
			list = append(list, t.who)
		}
		return list
	}
	at := [2]int{}
	for _, pair := range append(common(who(x), who(y)), [2]int{len(x), len(y)}) {
		for ; at[0] < pair[0]; at[0]++ {
			d.whole(0, &x[at[0]])
		}
		for ; at[1] < pair[1]; at[1]++ {
			d.whole(1, &y[at[1]])
		}
		if pair[0] < len(x) {
			d.pair(&x[pair[0]], &y[pair[1]])
			at = [2]int{pair[0] + 1, pair[1] + 1}
		}
	}
}

// whole writes a turn that only one of them has.
func (d *differ) whole(on int, t *turn) {
	d.line(signs[on], "## "+t.title)
	for _, shown := range t.entries {
		d.each(signs[on], d.linesOf(on, shown))
	}
}

// linesOf returns the lines of what an entry says.
func (d *differ) linesOf(on int, shown shownEntry) []string {
	if d.err != nil {
		return nil
	}
	blocks, err := d.sides[on].blocksOf(shown)
	if d.err = err; err != nil {
		return nil
	}
	return linesOf(bytes.TrimSuffix(bareWriter.append(nil, blocks.body...), []byte("\n")))
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
	var texts [2][]string
	for on, t := range []*turn{x, y} {
		for _, shown := range t.entries {
			texts[on] = append(texts[on], d.linesOf(on, shown)...)
		}
	}
	a, b := texts[0], texts[1]
	at := [2]int{}
	for _, same := range runs(common(a, b), len(a), len(b)) {
		d.each("-", a[at[0]:same.a])
		d.each("+", b[at[1]:same.b])
		at = [2]int{same.a + same.n, same.b + same.n}
		shared := a[same.a:at[0]]
		before, after := contextLines, contextLines
		if same.a == 0 {
			before = 0
		}
		if at[0] == len(a) && at[1] == len(b) {
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

// run is n elements that two lists have in common.
type run struct{ a, b, n int }

// runs joins pairs that follow each other, and adds an empty one at the end.
func runs(pairs [][2]int, a, b int) (list []run) {
	for _, p := range pairs {
		if n := len(list); n > 0 && p == [2]int{list[n-1].a + list[n-1].n, list[n-1].b + list[n-1].n} {
			list[n-1].n++
		} else {
			list = append(list, run{p[0], p[1], 1})
		}
	}
	return append(list, run{a, b, 0})
}
