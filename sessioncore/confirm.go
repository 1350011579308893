package sessioncore

import (
	"cmp"
	"context"
	"sync"

	"sessionfs/sessioncore/storage"
)

// confirmed tells which entries of an index are known to be in the file in the state in which it was last seen to have grown. A
// text of the same length in the place of another, and growth before anybody looks, is taken for growth: so what was indexed
// before that is read again where it is shown or referred to.
type confirmed struct {
	mu     sync.Mutex    // guards the fields below
	in     storage.Token // that state; the zero Token if the file was read as a whole
	before Entry         // the others were indexed in that state
	set    bitset        // of those before
	left   int           // number of those before that are not in set
}

// grew notes that the entries from one on were indexed in a state of the file.
func (c *confirmed) grew(in storage.Token, from Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in, c.before, c.set, c.left = in, from, newBitset(int(from)), int(from)
}

func (c *confirmed) grown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in != storage.Token{}
}

// has reports whether an entry is known in a state of the file.
func (c *confirmed) has(e Entry, in storage.Token) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in == in && (e >= c.before || c.set.has(e))
}

// add notes that entries were read again after the file was seen in a state.
func (c *confirmed) add(in storage.Token, entries ...Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		if c.in == in && e < c.before && !c.set.has(e) {
			c.set.add(e)
			c.left--
		}
	}
}

// missing returns those of entries, or of the first n if there are none, that are not known in the state in.
func (c *confirmed) missing(n int, entries []Entry) (missing []Entry, in storage.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		if e < c.before && !c.set.has(e) {
			missing = append(missing, e)
		}
	}
	for e := Entry(0); len(entries) == 0 && c.left > 0 && e < min(Entry(n), c.before); e++ {
		if !c.set.has(e) {
			missing = append(missing, e)
		}
	}
	return missing, c.in
}

// Confirm checks that entries, all if none is given, still are what was indexed. It reads those that were not read since the
// file was last seen to grow. The error wraps storage.ErrStale if one is not; the next Acquire then reads the file as a whole.
func (s *Snapshot) Confirm(ctx context.Context, entries ...Entry) error {
	missing, in := s.index.confirmed.missing(len(s.records), entries)
	read := s.EntryText
	if len(missing) > 1 { // with one buffer
		reader := NewEntryReader(s)
		read = reader.Read
	}
	for _, e := range missing {
		_, err := read(e)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		s.index.confirmed.add(in, missing...)
	}
	return nil
}
