package view

import (
	"context"
	"io"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/report"
)

// The entries of a page are made by several copies of it at once, a part each, and written in
// order.

// leastPart is how many entries of a branch are a part, if as many are left. Tests change it.
var leastPart = 128

const (
	// maxCopies is how many parts are made at once.
	maxCopies = 4
	// maxHeld is how many bytes of a part are held until those before it are written.
	maxHeld = 512 << 10
	// maxUp is how many entries above a part are looked at for the turn that goes on.
	maxUp = 1000
)

// partWriter writes a part of a page.
type partWriter func(context.Context, *pageWriter) error

// plan returns the parts of a page: the outline, the current branch, then each other branch.
func (p *pageWriter) plan(current []sessioncore.Entry) []partWriter {
	parts := []partWriter{func(ctx context.Context, p *pageWriter) error { return p.outline(ctx, current) }}
	parts = append(parts, p.cut(current)...)
	if p.alone {
		return parts
	}
	planned := make([]bool, p.s.Len())
	for _, e := range current {
		planned[e] = true
	}
	tree := p.s.Tree()
	for _, tip := range report.Tips(p.s) {
		if planned[tip] {
			continue
		}
		var path []sessioncore.Entry // the entries that no other branch before has
		e := tip
		for e != sessioncore.NoEntry && !planned[e] {
			path = append(path, e)
			planned[e] = true
			e = tree.Parent(e)
		}
		slices.Reverse(path)
		parts = append(parts, otherBranch(path, e))
	}
	return parts
}

// otherBranch returns the part of a branch that is not the current one: the entries of path, which begin below an
// entry, or NoEntry.
func otherBranch(path []sessioncore.Entry, above sessioncore.Entry) partWriter {
	return func(ctx context.Context, p *pageWriter) error {
		err := p.branchHeading(ctx, path, above)
		if err == nil {
			err = p.branch(ctx, path, 0)
		}
		p.write("</section>\n")
		return err
	}
}

// cut returns the parts of a branch. Each begins with a message that is no result of a tool, and has leastPart
// entries at least, but for the last one.
func (p *pageWriter) cut(path []sessioncore.Entry) (parts []partWriter) {
	begin := 0
	for i, e := range path {
		isResult := p.s.Role(e) == sessioncore.RoleToolResult
		mayBegin := p.s.Kind(e) == sessioncore.TypeMessage && !isResult
		if mayBegin && i-begin >= leastPart {
			parts = append(parts, branchPart(path[:i], begin))
			begin = i
		}
	}
	return append(parts, branchPart(path, begin))
}

// branchPart returns the part of a path from an index on.
func branchPart(path []sessioncore.Entry, from int) partWriter {
	return func(ctx context.Context, p *pageWriter) error {
		return p.branch(ctx, path, from)
	}
}

// branchHeading begins the section of a branch with its first words, which lead to the entry above it, and the marks
// of its last entry. It waits for these until the outline is written.
func (p *pageWriter) branchHeading(ctx context.Context, path []sessioncore.Entry, above sessioncore.Entry) error {
	words, err := p.firstWords(ctx, path)
	if err != nil {
		return err
	}
	p.write("<section>\n<h2 class=\"branch\">Another branch: ")
	if above == sessioncore.NoEntry {
		p.write(escaped(words))
	} else {
		_, href := p.nameOf(above)
		p.write("<a href=", href, ">", escaped(words), "</a>")
	}
	<-p.outlined
	tip := path[len(path)-1]
	marks := p.marks[tip]
	if marks != "" {
		p.write(" <i>", escaped(marks), "</i>")
	}
	p.write("</h2>\n")
	return nil
}

// firstWords returns the beginning of the first words in some entries, or the name of the first entry.
func (p *pageWriter) firstWords(ctx context.Context, path []sessioncore.Entry) (string, error) {
	for _, e := range path {
		said, _, err := report.Said(ctx, p.s, p.entries.reader.Read, e)
		if err != nil {
			return "", err
		}
		if said != "" {
			return names.FirstWords(said, maxFirstWords), nil
		}
	}
	return names.FirstWords(p.s.Name(path[0]), maxWord), nil
}

// pageCopy is a copy of a page, and its writer.
type pageCopy struct {
	*pageWriter
	to *turnWriter
}

// parts writes parts, several at a time. The first one that is not written is always among them.
func (p *pageWriter) parts(ctx context.Context, parts []partWriter) error {
	free := make(chan *pageCopy, maxCopies)
	for range min(len(parts), runtime.GOMAXPROCS(0), maxCopies) {
		to := &turnWriter{out: p.out}
		free <- &pageCopy{pageWriter: p.copy(to), to: to}
	}
	turn := make(chan struct{}) // of the next part; closed when the part before it is written
	close(turn)
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		other := <-free
		nextTurn := make(chan struct{})
		other.to.turn = turn
		turn = nextTurn
		group.Go(func() error {
			err := part(ctx, other.pageWriter)
			flushErr := other.finish()
			close(nextTurn) // also after an error, so that no other part waits
			free <- other
			if err == nil {
				err = flushErr
			}
			return err
		})
	}
	return group.Wait()
}

// finish writes all that the copy holds, when its turn has come.
func (c *pageCopy) finish() error {
	flushErr := c.out.Flush()
	writeErr := c.to.flush()
	if flushErr != nil {
		return flushErr
	}
	return writeErr
}

// branch writes the entries of a branch from an index on.
func (p *pageWriter) branch(ctx context.Context, path []sessioncore.Entry, from int) error {
	turn, err := p.turnBefore(path[:from])
	if err != nil {
		return err
	}
	for i := from; i < len(path); i++ {
		e := path[i]
		if p.written[e] { // within its call
			continue
		}
		blocks, err := p.entries.blocksOf(e)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		outcomes, err := p.outcomesOf(e, blocks, path[i+1:])
		if err != nil {
			return err
		}
		p.entry(e, turn.begins(blocks.flags, blocks.speaker), blocks, outcomes)
		if p.err != nil {
			return p.err
		}
	}
	return nil
}

// outcomesOf returns the results of an entry's calls among the entries behind it, none if it has no calls.
func (p *pageWriter) outcomesOf(e sessioncore.Entry, blocks *entryBlocks, behind []sessioncore.Entry) ([]callOutcome, error) {
	if !p.s.IsMessage(e, sessioncore.RoleAssistant) {
		return nil, nil
	}
	p.results.builder.answered(e, p.entries.text)
	hasCalls := slices.ContainsFunc(blocks.body, func(b block) bool {
		return b.call != ""
	})
	if !hasCalls {
		return nil, nil
	}
	return p.outcomesIn(behind)
}

// turnBefore returns the turn at the end of entries, none if it began too far above. It depends on the
// entries from the last one that is part of a turn and no result of a tool.
func (p *pageWriter) turnBefore(path []sessioncore.Entry) (turn turnStart, err error) {
	var ends []turnStart // of the last entries, the last one first
	near := path[max(0, len(path)-maxUp):]
	for _, e := range slices.Backward(near) {
		blocks, err := p.entries.blocksOf(e)
		if err != nil {
			return turn, err
		}
		ends = append(ends, turnStart{flags: blocks.flags, speaker: blocks.speaker})
		isResult := blocks.flags&joinsTurn != 0
		if blocks.flags&inTurn != 0 && !isResult {
			break
		}
	}
	for _, end := range slices.Backward(ends) {
		turn.begins(end.flags, end.speaker)
	}
	return turn, nil
}

// turnWriter writes to out when its turn has come. Until then it holds the text, and waits when
// that is long.
type turnWriter struct {
	out  io.Writer
	turn <-chan struct{} // closed when the turn comes
	held []byte
}

// Write implements io.Writer.
func (w *turnWriter) Write(text []byte) (int, error) {
	w.held = append(w.held, text...)
	if len(w.held) < maxHeld {
		return len(text), nil
	}
	return len(text), w.flush()
}

// flush writes the text that is held.
func (w *turnWriter) flush() error {
	<-w.turn
	_, err := w.out.Write(w.held)
	w.held = w.held[:0]
	return err
}
