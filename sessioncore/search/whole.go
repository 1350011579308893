package search

import (
	"context"
	"errors"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// A search keeps the beginnings of texts, so that the hits of a long line need little memory. This file
// reads the entry of a hit again for the whole line.

// ellipsis marks the cut end of a line.
const ellipsis = "…"

// isCut reports whether a text of the hit may be cut. A text that has an ellipsis of its own looks so too.
func (h *Hit) isCut() bool {
	return strings.HasPrefix(h.Line, ellipsis) || strings.HasSuffix(h.Line, ellipsis) || strings.HasSuffix(h.Prompt, ellipsis)
}

// Whole returns a hit of m with the whole line that has the match, and the whole first line of its prompt.
// A hit that is gone meanwhile stays as it is.
func (s *Searcher) Whole(ctx context.Context, m Matcher, h *Hit) (Hit, error) {
	whole := *h
	if !h.isCut() {
		return whole, nil
	}
	snap, err := s.store.Session(h.File).Acquire(ctx)
	if err == nil {
		defer snap.Release()
		err = s.readWhole(m, snap, &whole)
	}
	switch {
	case errors.Is(err, sessioncore.ErrNotFound), errors.Is(err, sessioncore.ErrNotSession), storage.IsMissing(err):
		return *h, ctx.Err()
	}
	return whole, err
}

// readWhole replaces the texts of a hit by whole ones, as far as the session has them still. The error wraps
// sessioncore.ErrNotFound if the entry is gone.
func (s *Searcher) readWhole(m Matcher, snap *sessioncore.Snapshot, h *Hit) error {
	header, slot, err := snap.ReadHeader()
	if err != nil {
		return err
	}
	_, title := listing.DisplayName(snap, h.File)
	c, isQuery := m.Checker(header, title).(*checker)
	if isQuery {
		c.isWhole = true
	}
	if h.Entry == "" {
		own := header.Member("title")
		if slot != nil {
			own = slot.Member("title")
		}
		line, ok := c.Title(own, h.Time)
		if ok {
			h.Line = line
		}
		return nil
	}
	e, err := snap.FindName(h.Entry)
	if err != nil {
		return err
	}
	text, err := snap.EntryText(e)
	if err != nil {
		return err
	}
	if h.Prompt != "" {
		prompts := Prompts{AreWhole: true}
		h.Prompt = prompts.Before(snap, e)
	}
	if !isQuery {
		h.Line = strings.Join(h.calls, callsBetween)
		return nil
	}
	if snap.Role(e) == sessioncore.RoleToolResult {
		reader := worker{s: s, m: m}
		c.output = reader.output(h.File, text)
	}
	again, ok := c.Entry(snap, e, text)
	if ok {
		h.Line = again.Line
	}
	return nil
}
