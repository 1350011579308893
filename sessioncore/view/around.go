package view

import (
	"bytes"
	"context"
	"io"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
)

// Passage is the transcript of a branch, and the part of it around an entry.
type Passage struct {
	Document *document.Document
	From, To int64 // the part
	At       int64 // the beginning of the entry in the document
}

// Text returns the part.
func (p *Passage) Text() io.Reader { return io.NewSectionReader(p.Document, p.From, p.To-p.From) }

// Around returns the transcript of the branch through an entry, with the part that has so many shown
// entries on each side of it. An entry that a transcript does not show is where the next one begins.
func Around(
	ctx context.Context, s *sessioncore.Snapshot, at sessioncore.Entry, count int, links Links,
) (*Passage, error) {
	end := BranchThrough(s, at)
	t, err := newTranscript(ctx, s, end, links)
	if err != nil {
		return nil, err
	}
	p := &Passage{}
	p.Document, err = Render(ctx, s, end, links)
	if err != nil {
		return nil, err
	}
	before := map[sessioncore.Entry]bool{}
	for _, e := range s.Path(at) {
		before[e] = e != at
	}
	index := 0 // of the entry in those that are shown
	for index < len(t.entries)-1 && before[t.entries[index].entry] {
		index++
	}
	p.To = p.Document.Size()
	offset := p.To
	for i := len(t.entries) - 1; i >= 0; i-- { // from the end, as the size of the head is not known
		if i == index+count {
			p.To = offset
		}
		offset -= t.entries[i].size
		if i == index {
			p.At = offset
		}
		if i == index-count {
			p.From = offset
		}
	}
	return p, nil
}

// BranchThrough returns the end of a branch with an entry: the leaf if that is below it, else the
// newest tip below it. It is the entry itself if nothing is below it.
func BranchThrough(s *sessioncore.Snapshot, at sessioncore.Entry) sessioncore.Entry {
	end := s.BranchBelow(at)
	isOfLeaf := end != at
	tree := s.Tree()
	if isOfLeaf || !tree.Has(at) {
		return end
	}
	for {
		children := tree.Children(end)
		if len(children) == 0 {
			return end
		}
		newest := len(children) - 1
		end = children[newest]
	}
}

// Lines returns in how many lines a document begins before an offset.
func (p *Passage) Lines(before int64) (lines int, err error) {
	in := io.NewSectionReader(p.Document, 0, before)
	part := make([]byte, maxColoured)
	for {
		n, err := in.Read(part)
		lines += bytes.Count(part[:n], []byte("\n"))
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
	}
}
