package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// Fresh is the least time that a mount relies on its last look at the table: foreign
	// changes show within a second, and the kernel's cache takes a part of that.
	Fresh = 250 * time.Millisecond
	// freshNoted is Fresh for a table with a trigger that records its changes: then a look is cheap. Behind
	// a pooler each look is planned anew, which costs the server twice as much.
	freshNoted, freshPlanned = 25 * time.Millisecond, 50 * time.Millisecond
	// rest is the pause after a look at a whole table, in multiples of the time that the look took.
	rest = 20
	// Callers do not wait for a look within recent of the last one, if that took slowLook.
	slowLook, recent = 5 * time.Millisecond, 750 * time.Millisecond
	// patience bounds the time from a look's start that a request waits for it. Then the catalogue
	// answers.
	patience = 250 * time.Millisecond
)

// look has the time and the state of the last look at the table.
type look struct {
	turn   sync.Mutex  // held during a look; guards the fields up to mu
	seen   string      // first transaction with changes that were not seen (an xid8); "" to read all rows next
	server string      // the server that answered, and its trigger: of another one all rows are read
	breaks int64       // pool.breaks before it
	noted  atomic.Bool // changes are noted (TableSource.Trigger)

	mu      sync.Mutex    // guards the fields below
	running chan struct{} // closed at the end of the look that is under way; nil if none is
	began   time.Time     // when that began, or the last one
	at      time.Time     // when the last one began that succeeded
	good    time.Time     // the time until which that is valid
	slow    bool          // it took longer than slowLook
}

// refresh brings the catalogue up to date if the last look is too old. The catalogue stays as it
// was if the server does not answer or the table is locked.
func (s *Storage) refresh() {
	asked := time.Now()
	for s.broken.Load() == nil {
		running, until := s.startLook(asked)
		if running == nil {
			return
		}
		if s.opts.Fresh == 0 {
			<-running
			continue
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-running:
			timer.Stop()
		case <-timer.C:
			return
		}
	}
}

// startLook begins a look unless one is under way. It returns a channel that is closed at the
// look's end, and the time until which to wait for it; nil if the last look is valid for a caller
// of time asked.
func (s *Storage) startLook(asked time.Time) (running chan struct{}, until time.Time) {
	l := &s.look
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		isFresh := s.opts.Fresh > 0 && asked.Before(l.good)
		if isFresh || l.at.After(asked) {
			return nil, asked
		}
		done := make(chan struct{})
		if !s.work(func() { s.lookAsync(done) }) {
			return nil, asked
		}
		l.running = done
		l.began = time.Now()
	}
	if l.slow && asked.Before(l.at.Add(recent)) {
		return l.running, asked
	}
	return l.running, l.began.Add(patience)
}

// lookAsync looks at the table, and then closes done. A server that refuses counts as gone.
func (s *Storage) lookAsync(done chan struct{}) {
	defer func() {
		s.look.mu.Lock()
		defer s.look.mu.Unlock()
		s.look.running = nil
		close(done)
	}()
	err := s.lookNow(s.ctx)
	if err != nil && s.ctx.Err() == nil {
		s.markUnreachable(err)
	}
}

// lookNow reads the changes since the last look, or all rows if these are not known.
func (s *Storage) lookNow(ctx context.Context) error {
	l := &s.look
	l.turn.Lock()
	defer l.turn.Unlock()
	began := time.Now()
	complete, err := s.readChanged(ctx)
	if err == nil && !complete {
		l.seen = ""
		_, err = s.readChanged(ctx)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	duration := time.Since(began)
	l.at = began
	l.slow = duration > slowLook
	l.good = began.Add(s.validity(duration))
	return nil
}

// validity returns how long a look that took so long is valid: the longer it took, the rarer it is. If
// changes are noted, it is short always.
func (s *Storage) validity(duration time.Duration) time.Duration {
	switch {
	case !s.look.noted.Load():
		return max(s.opts.Fresh, rest*duration)
	case s.pool.unprepared.Load():
		return min(s.opts.Fresh, freshPlanned)
	}
	return min(s.opts.Fresh, freshNoted)
}

// changeSet is the result of a look.
type changeSet struct {
	rows     []rowFacts
	gone     []string // paths of rows that are not in the table
	count    int      // of rows in the table, -1 where changes are noted
	horizon  string   // look.seen
	server   string
	trigger  *string // that notes changes, nil if none does
	truncate bool    // all rows were removed
}

// readChanged reads the rows of transactions that the last look has not seen, or all rows if look.seen is "".
// complete is false, without an error, if there may be other changes: then all rows must be read. Callers must
// hold look.turn.
func (s *Storage) readChanged(ctx context.Context) (complete bool, err error) {
	l := &s.look
	since := l.seen
	asked := s.now()
	sql := s.sql.changed
	if l.noted.Load() && since != "" {
		sql = s.sql.noted
	}
	breaks := s.pool.breaks.Load()
	var now changeSet
	err = s.read(ctx, readLimit, func(ctx context.Context, c conn) error {
		now = changeSet{}
		rows, _ := c.Query(ctx, sql, s.prefix, since, s.quoted) // rows has the error
		return now.scan(rows)
	})
	mayRepeat := since != "" && !errors.Is(err, ErrUnreachable)
	switch {
	case err != nil && mayRepeat:
		return false, nil // the trigger's table may be gone
	case err != nil:
		return false, err
	}
	isNoted := now.trigger != nil
	if isNoted {
		now.server += " " + *now.trigger
	}
	// Another server, or one that lost data, may use numbers of transactions again.
	isOther := now.truncate || now.server != l.server || breaks != l.breaks
	if isOther && since != "" {
		return false, nil
	}
	l.server = now.server
	l.breaks = breaks
	l.noted.Store(isNoted)
	return s.store(now, asked, since == ""), nil
}

// scan reads the answer to queries.changed or queries.noted.
func (now *changeSet) scan(rows pgx.Rows) error {
	var path *string // of a changed row, "" for all rows; nil without a change
	var f rowFacts
	targets := append([]any{&now.count, &now.horizon, &now.server, &now.trigger, &path}, f.targets()...)
	_, err := pgx.ForEachRow(rows, targets, func() error {
		switch {
		case path == nil: // the state of the server alone
		case f.path != "":
			now.rows = append(now.rows, f)
		case *path == "":
			now.truncate = true
		default:
			now.gone = append(now.gone, *path)
		}
		return nil
	})
	return err
}

// store stores the result of a look at time asked, of all rows or of some. It reports whether the
// catalogue then has as many rows as the table: otherwise some were removed. Callers must hold
// look.turn.
func (s *Storage) store(now changeSet, asked int64, all bool) (complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isInTable := map[string]bool{}
	hasNewer := false // facts of a row were stored since asked, by a write or a read
	for _, f := range now.rows {
		isStored := s.put(f, asked)
		if !isStored {
			hasNewer = true
		}
		isInTable[f.path] = true
	}
	if all {
		for path := range s.rows {
			if !isInTable[path] {
				now.gone = append(now.gone, path)
			}
		}
	}
	for _, path := range now.gone {
		r := s.rows[path]
		switch {
		case r == nil: // it was never seen
		case r.stored <= asked:
			s.remove(path)
		default:
			hasNewer = true
		}
	}
	if !hasNewer { // otherwise the next look reads the same again
		s.look.seen = now.horizon
	}
	return now.count < 0 || len(s.rows) == now.count
}
