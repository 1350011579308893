package view

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"sessionfs/sessioncore"
)

// ShownBranch is a branch of a session.
type ShownBranch struct {
	Session *sessioncore.Snapshot
	End     sessioncore.Entry // NoEntry for the branch without entries
}

const (
	// contextLines is how many lines are shown around those that differ.
	contextLines = 3
	// maxCompared is how many bytes of a turn are compared line by line. A longer one is shown
	// whole.
	maxCompared = 4 << 20
)

// diff compares two branches as diff -u does, and calls f for each line: the sign is "-" for lines
// of the first alone, "+" for lines of the second alone, "@@" in place of common ones. Turns are
// compared by their texts, without times and ids, labels and settings; a turn that differs is
// compared line by line with a turn of the same speaker. diff returns whether there is a difference.
func diff(ctx context.Context, branches [2]ShownBranch, f func(sign, text string) error) (differs bool, err error) {
	d := differ{ctx: ctx, f: f}
	for i, branch := range branches {
		d.sides[i], err = newSide(ctx, branch)
		if err != nil {
			return false, err
		}
	}
	list := changes(d.sides[0].turns, d.sides[1].turns, func(t turn) uint64 {
		return t.sum
	})
	isChange := func(c listChange[turn]) bool {
		return len(c.gone)+len(c.come) > 0
	}
	if !slices.ContainsFunc(list, isChange) {
		return false, nil
	}
	for _, c := range list {
		d.changed(c.gone, c.come)
		n := len(c.same)
		if n > 0 {
			d.line("@@", fmt.Sprintf("in common: %s, to %s", counted(n, "turn"), c.same[n-1].title))
		}
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
	sum     uint64 // of the speaker and the text
	speaker string
	title   string // its heading
	entries []shownEntry
	size    int64 // in bytes
}

// newSide reads the turns of a branch. Notes belong to none.
func newSide(ctx context.Context, branch ShownBranch) (*side, error) {
	t, err := newTranscript(ctx, branch.Session, branch.End, Links{Blobs: "blobs/"})
	if err != nil {
		return nil, err
	}
	s := &side{transcript: t}
	var sum maphash.Hash
	sum.SetSeed(hashSeed)
	for _, shown := range t.entries {
		blocks, err := t.blocksOf(shown.entry)
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
			speaker := blocks.heading.line[0].text
			heading := string(t.writer.append(nil, blocks.heading))
			title := strings.TrimSpace(strings.TrimPrefix(heading, "\n## "))
			s.turns = append(s.turns, turn{speaker: speaker, title: title})
			sum.Reset()
			sum.WriteString(speaker)
		}
		text := bareWriter.append(nil, blocks.body...)
		sum.Write(text)
		last := &s.turns[len(s.turns)-1]
		last.sum = sum.Sum64()
		last.size += int64(len(text))
		last.entries = append(last.entries, shown)
	}
	return s, nil
}

// bareWriter writes blocks to be compared.
var bareWriter = markdownWriter{links: Links{Blobs: "blobs/"}, bare: true}

// differ writes a difference.
type differ struct {
	ctx   context.Context
	sides [2]*side
	f     func(sign, text string) error
	err   error // the first
}

// line calls f with a line, unless there was an error.
func (d *differ) line(sign, text string) {
	if d.err == nil {
		d.err = d.ctx.Err()
	}
	if d.err == nil {
		d.err = d.f(sign, text)
	}
}

// signs are the signs for lines of one side alone.
var signs = [2]string{"-", "+"}

// lines writes lines with one sign.
func (d *differ) lines(sign string, lines []string) {
	for _, line := range lines {
		d.line(sign, line)
	}
}

// changed writes the turns of both sides between two that are the same, beside each other where they are of one
// speaker.
func (d *differ) changed(gone, come []turn) {
	bySpeaker := changes(gone, come, func(t turn) string {
		return t.speaker
	})
	for _, c := range bySpeaker {
		for i := range c.gone {
			d.whole(0, &c.gone[i])
		}
		for i := range c.come {
			d.whole(1, &c.come[i])
		}
		for i := range c.same {
			d.pair(&c.same[i], &c.also[i])
		}
	}
}

// whole writes a turn that only one side has; side is its index.
func (d *differ) whole(side int, t *turn) {
	d.line(signs[side], "## "+t.title)
	for line := range d.linesOf(side, t) {
		d.line(signs[side], line)
	}
}

// linesOf reads the lines of a turn of a side. It ends at an error, which becomes d.err.
func (d *differ) linesOf(side int, t *turn) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, shown := range t.entries {
			blocks, err := d.sides[side].blocksOf(shown.entry)
			if d.err == nil {
				d.err = err
			}
			if d.err != nil {
				return
			}
			text := string(bareWriter.append(nil, blocks.body...))
			for _, line := range linesOf(strings.TrimSuffix(text, "\n")) {
				if !yield(line) {
					return
				}
			}
		}
	}
}

// pair writes two turns of one speaker: gone of the first side, come of the second.
func (d *differ) pair(gone, come *turn) {
	if gone.size+come.size > maxCompared {
		d.whole(0, gone)
		d.whole(1, come)
		return
	}
	if gone.title == come.title {
		d.line(" ", "## "+gone.title)
	} else {
		d.line("-", "## "+gone.title)
		d.line("+", "## "+come.title)
	}
	linesGone := slices.Collect(d.linesOf(0, gone))
	linesCome := slices.Collect(d.linesOf(1, come))
	list := changes(linesGone, linesCome, itself)
	for i, c := range list {
		d.lines("-", c.gone)
		d.lines("+", c.come)
		before := contextLines // of the lines in common, those behind the change
		after := contextLines  // and those before the next change
		isBeginning := i == 0 && len(c.gone) == 0
		if isBeginning {
			before = 0
		}
		if i == len(list)-1 {
			after = 0
		}
		d.context(c.same, before, after)
	}
}

// context writes the first and the last of lines in common, and a note in place of those between them, if these are
// more than one.
func (d *differ) context(same []string, before, after int) {
	left := len(same) - before - after
	if left <= 1 {
		d.lines(" ", same)
		return
	}
	d.lines(" ", same[:before])
	d.line("@@", "in common: "+counted(left, "line"))
	d.lines(" ", same[len(same)-after:])
}

// counted returns "1 line" or "2 lines".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
