package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// Names of the database's files.
const (
	databaseName = "history.db"
	walName      = databaseName + "-wal"
	journalName  = databaseName + "-journal"
)

const (
	// maxReads bounds the concurrent reads: each takes up to maxMemory, and maxCopied for the files.
	maxReads = 2
	// maxTime bounds a read with all its attempts. 100,000 prompts take a third of a second.
	maxTime = 10 * time.Second
	// maxWait bounds the wait for other reads.
	maxWait = 3 * time.Second
	// grace is how long a read may take to notice that its time is over. The library checks often, but not in every
	// loop. A read that never ends keeps its slot, so that there are never more than maxReads.
	grace = 2 * time.Second
	// pause is how long to wait between two attempts to copy the files, so that a writer can proceed.
	pause = time.Millisecond
)

// Files is the part of storage.Storage that is used to read the database.
type Files interface {
	Stat(name string) (storage.Stat, error)
	Open(name string) (storage.Object, error)
}

// History is the prompt history of a SOURCE. It is safe for concurrent use.
type History struct {
	files Files
	limit time.Duration // maxTime, or less in tests
	reads chan struct{} // a slot for each read in progress
}

// New returns the history in files, which need not exist.
func New(files Files) *History {
	return &History{files: files, limit: maxTime, reads: make(chan struct{}, maxReads)}
}

// State identifies a state of the database: if a Measure is settled, equal States mean equal content.
type State struct {
	database storage.Stat
	wal      storage.Token // zero if there is no log
}

// Stat returns the Stat of the database file, with the times of the last change of it or of its log.
func (s State) Stat() storage.Stat {
	st := s.database
	st.Modified = max(st.Modified, s.wal.Modified)
	st.Changed = max(st.Changed, s.wal.Changed)
	return st
}

// State returns the current state of the files. If there is no database, or it is not a regular file, the error wraps
// fs.ErrNotExist.
func (h *History) State() (State, error) {
	st, err := h.files.Stat(databaseName)
	if err != nil {
		return State{}, err
	}
	if st.Kind != storage.KindFile {
		return State{}, fmt.Errorf("%w: %s is not a file", fs.ErrNotExist, databaseName)
	}
	s := State{database: st}
	if wal, err := h.files.Stat(walName); err == nil && wal.Kind == storage.KindFile {
		s.wal = wal.Token
	}
	return s, nil
}

// Measure describes a rendering.
type Measure struct {
	State State // of the database when it was read
	Size  int64 // bytes
	// Settled reports that any later change of the database changes its State too. It is false for a few milliseconds
	// after a change if the file system's clock is coarse.
	Settled bool
}

// Measure returns the Measure of a rendering without keeping its text. Errors are those of Render. hold is that of the
// user who asks.
func (h *History) Measure(ctx context.Context, match string, hold *budget.Hold) (Measure, error) {
	return h.read(ctx, match, &lines{hold: hold})
}

// Render returns the prompts that have the words of match, or match it as an FTS5 query, or all if match is empty: one
// JSON object per line, newest first, as in the client's own lists and searches. room is the expected size in bytes, 0
// if unknown. The text is held in hold, which may be nil; after an error it holds nothing.
//
// Errors wrap fs.ErrNotExist (no database), ErrQuery, ErrTooBig, ErrTooSlow, ErrBusy, ErrUnreadable,
// budget.ErrNoMemory, or an error of the storage.
func (h *History) Render(ctx context.Context, match string, room int64, hold *budget.Hold) ([]byte, Measure, error) {
	out := &lines{keep: true, hold: hold}
	if err := out.grow(int(min(room, maxRendering))); err != nil {
		return nil, Measure{}, err
	}
	m, err := h.read(ctx, match, out)
	if err != nil {
		hold.Close()
		return nil, m, err // out may still be written to
	}
	return out.text.Bytes(), m, nil
}

// read runs a query on one committed state of the database, within the limits.
func (h *History) read(ctx context.Context, match string, out *lines) (Measure, error) {
	select {
	case h.reads <- struct{}{}:
	case <-time.After(min(maxWait, h.limit)):
		return Measure{}, fmt.Errorf("%w, for %v", ErrBusy, maxWait)
	case <-ctx.Done():
		return Measure{}, ctx.Err()
	}
	type answer struct {
		measure Measure
		err     error
	}
	done, gone := make(chan answer), make(chan struct{})
	defer close(gone)
	go storage.Guarded(func() {
		m, err := h.repeat(ctx, match, out)
		if !isLost(err) {
			<-h.reads
		}
		if err != nil {
			out.hold.Close()
		}
		select {
		case done <- answer{m, err}:
		case <-gone:
			out.hold.Close()
		}
	})()
	timeout := time.NewTimer(h.limit + grace)
	defer timeout.Stop()
	select {
	case a := <-done:
		return a.measure, a.err
	case <-ctx.Done(): // the read notices too
		return Measure{}, ctx.Err()
	case <-timeout.C:
		return Measure{}, fmt.Errorf("%w: it does not end", ErrTooSlow)
	}
}

// repeat copies the files until they are of one state, and runs the query on that.
func (h *History) repeat(request context.Context, match string, out *lines) (m Measure, err error) {
	ctx, cancel := context.WithTimeout(request, h.limit)
	defer cancel()
	room := out.hold.Another()
	defer room.Close()
	var c *copied
	for err = errChanged; errors.Is(err, errChanged) && ctx.Err() == nil; {
		if _, err := h.State(); err != nil {
			return m, err
		}
		if c, err = h.copy(ctx, &room); errors.Is(err, errChanged) {
			time.Sleep(pause)
		}
	}
	if err == nil {
		m.State, m.Settled = c.state, c.settled
		if err = queryWithin(ctx, c, match, out); err != nil && c.content[journalName] != nil {
			err = fmt.Errorf("%w (%s has a transaction that was cut off or is under way)", err, journalName)
		}
		m.Size = out.size
	}
	switch {
	case isLost(err):
	case request.Err() != nil:
		err = request.Err()
	case errors.Is(err, errChanged):
		err = fmt.Errorf("%w: the database changed all the time, for %v", ErrTooSlow, h.limit)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: more than %v", ErrTooSlow, h.limit)
	}
	return m, err
}
