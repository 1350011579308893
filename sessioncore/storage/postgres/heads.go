package postgres

import (
	"bytes"
	"context"
	"slices"
)

// fetchHead is fetch for the beginning of a row of which no more is kept. Callers must hold c.fetching.
func (c *content) fetchHead() error {
	asked := c.s.now()
	known, _ := c.facts()
	found, heads, err := c.s.heads([]string{known.path})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return c.isGone()
	}
	return c.begins(found[0], heads[0], asked)
}

// begins keeps the beginning of the row, which was asked for when the clock was asked. Callers must hold c.fetching.
func (c *content) begins(now facts, head []byte, asked int64) error {
	c.mu.Lock()
	same := bytes.HasPrefix(head, c.text.data)
	c.mu.Unlock()
	if !same || c.cannotTell(now) {
		return c.isAnother(now)
	}
	n := int64(len(head))
	c.s.kept.reserve(c, text{}, n) // what is so short is kept also where there is no room
	c.keep(text{n: n, data: head}, now, n == now.size)
	c.s.kept.set(c, n, false)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.put(now, asked)
	return nil
}

// heads reads the beginnings of rows.
func (s *Storage) heads(paths []string) (found []facts, heads [][]byte, err error) {
	err = s.try(readLimit, func(ctx context.Context, c conn) error {
		found, heads = found[:0], heads[:0]
		rows, err := c.Query(ctx, s.sql.heads, paths, headSize)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var f maybeFacts
			var head []byte
			if err := rows.Scan(append(f.targets(), &head)...); err != nil {
				return err
			}
			found, heads = append(found, f.facts()), append(heads, head)
		}
		return rows.Err()
	})
	return found, heads, err
}

// aheadRows is how many rows' beginnings are read at once at most.
const aheadRows = 1024

// ReadAhead implements storage.Storage: it reads the beginnings of those rows that have never been read.
func (s *Storage) ReadAhead(names []string) {
	if len(names) < 2 || s.refresh() != nil { // who opens them is told
		return
	}
	var paths []string
	of := map[string]*row{}
	s.mu.RLock()
	for _, name := range names {
		path := s.pathOf(name)
		if r := s.rows[path]; r != nil && r.content.length.Load() == 0 {
			paths, of[path] = append(paths, path), r
		}
	}
	s.mu.RUnlock()
	for some := range slices.Chunk(paths, aheadRows) {
		asked := s.now()
		found, heads, err := s.heads(some)
		if err != nil {
			return
		}
		for i, f := range found {
			if c := &of[f.path].content; c.fetching.TryLock() {
				if c.length.Load() == 0 {
					_ = c.begins(f, heads[i], asked)
				}
				c.fetching.Unlock()
			}
		}
	}
}
