package sessioncore

import (
	"context"
	"sync"

	"sessionfs/sessioncore/storage"
)

// confirmedEntries are the entries of an index that were verified in the file's latest state.
// Growth of a file may hide an overwritten text of the same length before it. So after growth, an
// earlier entry is read again before it is shown or referred to.
type confirmedEntries struct {
	mu     sync.Mutex    // guards the fields below
	in     storage.Token // the state after the latest growth; zero if the file was read as a whole
	before Entry         // entries from here on were indexed in that state
	set    bitset        // verified entries below before
	left   int           // number of entries below before that are not in set
}

// setGrowth records that the entries from one on were indexed in a grown state of the file.
func (c *confirmedEntries) setGrowth(in storage.Token, from Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in = in
	c.before = from
	c.set = newBitset(int(from))
	c.left = int(from)
}

// hasGrowth reports whether the file grew since it was read as a whole.
func (c *confirmedEntries) hasGrowth() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in != storage.Token{}
}

// has reports whether an entry is verified in a state of the file.
func (c *confirmedEntries) has(e Entry, in storage.Token) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in == in && !c.isMissing(e)
}

// isMissing reports whether an entry was not read since the file grew. Callers must hold c.mu.
func (c *confirmedEntries) isMissing(e Entry) bool {
	return e < c.before && !c.set.has(e)
}

// add records entries that were verified in a state of the file. It does nothing if the file has
// grown since.
func (c *confirmedEntries) add(in storage.Token, entries ...Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in != in {
		return
	}
	for _, e := range entries {
		if c.isMissing(e) {
			c.set.add(e)
			c.left--
		}
	}
}

// missing returns the unverified ones of entries, and the state of the file.
func (c *confirmedEntries) missing(entries []Entry) (missing []Entry, in storage.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		if c.isMissing(e) {
			missing = append(missing, e)
		}
	}
	return missing, c.in
}

// missingOfFirst returns the unverified ones of the first n entries, and the state of the file.
func (c *confirmedEntries) missingOfFirst(n int) (missing []Entry, in storage.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 { // as it is of most files: nothing to search for
		return nil, c.in
	}
	end := min(Entry(n), c.before)
	for e := range end {
		if !c.set.has(e) {
			missing = append(missing, e)
		}
	}
	return missing, c.in
}

// Confirm verifies entries by reading those that were not read since the file last grew. The error
// wraps storage.ErrStale if one was overwritten; the next Acquire rereads all.
func (s *Snapshot) Confirm(ctx context.Context, entries ...Entry) error {
	missing, in := s.index.confirmed.missing(entries)
	return s.verify(ctx, missing, in)
}

// ConfirmAll is Confirm for all entries.
func (s *Snapshot) ConfirmAll(ctx context.Context) error {
	missing, in := s.index.confirmed.missingOfFirst(len(s.records))
	return s.verify(ctx, missing, in)
}

// verify reads the missing entries, and records them as verified in the state in of the file. The
// error comes from the first failed read, or from ctx; then it records none.
func (s *Snapshot) verify(ctx context.Context, missing []Entry, in storage.Token) error {
	reader := NewEntryReader(s)
	for _, e := range missing {
		_, err := reader.Read(e)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		s.index.confirmed.add(in, missing...)
	}
	return nil
}
