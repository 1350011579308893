package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
)

const (
	// aheadRows is how many rows' beginnings are read at once at most.
	aheadRows = 1024
	// aheadSlack is how far the readers of a list may be from one another, in rows.
	aheadSlack = 32
)

// ahead reads the beginnings of rows before they are opened, where rows are opened in the order of their paths, as for a
// list of all sessions: for one after the other, each has to wait for an answer of the server.
type ahead struct {
	mu     sync.Mutex // guards the fields below; taken before Storage.mu
	order  []string   // paths
	made   int64      // Storage.layout when order was made
	next   int        // where the last reading ended, in order
	rows   int        // how many rows that were
	flight *flight    // under way
}

// flight is a reading of some rows.
type flight struct {
	from, to int // in ahead.order
	done     chan struct{}
}

// begin decides what is to be done about a row that is opened and has never been read: to wait for a reading that is under
// way, to read those paths, or neither.
func (a *ahead) begin(s *Storage, path string) (wait, read *flight, paths []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.mu.RLock()
	if a.made != s.layout {
		a.order, a.made = slices.Sorted(maps.Keys(s.rows)), s.layout
	}
	s.mu.RUnlock()
	at, found := slices.BinarySearch(a.order, path)
	switch {
	case !found:
		return nil, nil, nil
	case a.flight != nil && at >= a.flight.from && at < a.flight.to:
		return a.flight, nil, nil
	case a.rows == 0 || at < a.next-a.rows-aheadSlack || at > a.next+aheadSlack: // somewhere else
		a.next, a.rows = at+1, 1
		return nil, nil, nil
	case at < a.next-1 || a.flight != nil: // it changed while it was read, or a reader is ahead of the others
		return nil, nil, nil
	}
	a.rows = min(2*a.rows, aheadRows)
	a.flight = &flight{at, min(at+a.rows, len(a.order)), make(chan struct{})}
	a.next = a.flight.to
	return nil, a.flight, slices.Clone(a.order[a.flight.from:a.flight.to])
}

func (a *ahead) end(f *flight) {
	a.mu.Lock()
	a.flight = nil
	a.mu.Unlock()
	close(f.done)
}

// readAhead may read the beginning of a row that has never been read, and those of others. Who finds that it did not reads
// the row alone.
func (s *Storage) readAhead(path string) {
	wait, read, paths := s.ahead.begin(s, path)
	if wait != nil {
		<-wait.done
	}
	if read == nil {
		return
	}
	defer s.ahead.end(read)
	s.readHeads(paths)
}

// ReadAhead implements storage.Storage.
func (s *Storage) ReadAhead(names []string) {
	if len(names) < 2 || s.refresh() != nil { // who opens them is told
		return
	}
	for some := range slices.Chunk(names, aheadRows) {
		paths := make([]string, len(some))
		for i, name := range some {
			paths[i] = s.pathOf(name)
		}
		s.readHeads(paths)
	}
}

// readHeads reads the beginnings of those rows that have never been read.
func (s *Storage) readHeads(paths []string) {
	s.mu.RLock()
	paths = slices.DeleteFunc(paths, func(p string) bool {
		r := s.rows[p]
		return r == nil || r.content.length.Load() > 0
	})
	s.mu.RUnlock()
	if len(paths) == 0 {
		return
	}
	asked := s.now()
	heads := make([][]byte, 0, len(paths))
	found := make([]facts, 0, len(paths))
	err := s.try(func(ctx context.Context, c conn) error {
		heads, found = heads[:0], found[:0]
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
			heads, found = append(heads, head), append(found, f.facts())
		}
		return rows.Err()
	})
	if err != nil {
		return
	}
	for i, f := range found {
		s.mu.RLock()
		r := s.rows[f.path]
		s.mu.RUnlock()
		if r != nil {
			r.content.begins(f, heads[i])
		}
	}
	s.mu.Lock()
	for _, f := range found {
		s.put(f, asked)
	}
	s.mu.Unlock()
}

// begins keeps the beginning of a row, if nothing of it is or was kept and it is in the state that is known.
func (c *content) begins(f facts, head []byte) {
	if known, gone := c.facts(); gone || known.version != f.version || !c.fetching.TryLock() {
		return
	}
	defer c.fetching.Unlock()
	n := int64(len(head))
	if !c.s.kept.reserve(c, n) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.data) == 0 && c.dropped == "" {
		c.data, c.version, c.whole = head, f.version, n == f.size
		c.length.Store(n)
		c.s.kept.set(c, n)
	}
}
