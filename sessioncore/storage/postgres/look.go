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
	// Fresh is for how long a mount takes the table to be as it was, at least: what others write shows within a second, and the
	// kernel remembers for a part of that.
	Fresh = 250 * time.Millisecond
	// freshNoted is Fresh where changes are noted: then a look costs next to nothing. A pooler has each planned anew, which costs
	// the server twice as much.
	freshNoted, freshPlanned = 25 * time.Millisecond, 50 * time.Millisecond
	// rest is how many times as long as a look took that reads the whole table the server is left alone after it.
	rest = 20
	// Over a line on which a look takes slowLook nobody waits for one that begins within recent of the last one.
	slowLook, recent = 5 * time.Millisecond, 750 * time.Millisecond
	// patience is how long a question waits for a look, from when that began, before it is answered with what is known.
	patience = 250 * time.Millisecond
)

// look is what is known of when the table was last looked at, and how.
type look struct {
	turn   sync.Mutex  // held during a look; guards the fields up to mu
	seen   string      // the transaction from which on changes were not seen, as PostgreSQL writes an xid8; "" if the next look reads all rows
	server string      // which server answered, with which trigger: of another one all rows are read
	breaks int64       // pool.breaks before it
	noted  atomic.Bool // changes are noted (Source.Trigger)

	mu      sync.Mutex    // guards the fields below
	running chan struct{} // closed at the end of the look that is under way; nil if none is
	began   time.Time     // when that began, or the last one
	at      time.Time     // when the last one began that succeeded
	good    time.Time     // until when that is good
	slow    bool          // that it took slowLook
}

// refresh brings the catalogue up to date if the last look is too old. Where the server does not answer, or somebody has
// locked the table, the catalogue stays as it was.
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

// startLook begins a look unless one is under way. It returns what is closed at its end, and until when to wait for that; nil if
// the last one is good for who asked then.
func (s *Storage) startLook(asked time.Time) (running chan struct{}, until time.Time) {
	l := &s.look
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		if l.at.After(asked) || s.opts.Fresh > 0 && asked.Before(l.good) {
			return nil, asked
		}
		done := make(chan struct{})
		if !s.work(func() { s.lookAside(done) }) {
			return nil, asked
		}
		l.running, l.began = done, time.Now()
	}
	if l.slow && asked.Before(l.at.Add(recent)) {
		return l.running, asked
	}
	return l.running, l.began.Add(patience)
}

// lookAside looks at the table, and then closes done. A server that refuses is as one that is gone.
func (s *Storage) lookAside(done chan struct{}) {
	defer func() {
		s.look.mu.Lock()
		defer s.look.mu.Unlock()
		s.look.running = nil
		close(done)
	}()
	if err := s.lookNow(s.ctx); err != nil && s.ctx.Err() == nil {
		s.lose(err)
	}
}

// lookAgain makes the next refresh look at the table, where something was not as it was known.
func (s *Storage) lookAgain() {
	s.look.mu.Lock()
	defer s.look.mu.Unlock()
	s.look.good, s.look.slow = time.Time{}, false
}

// lookNow reads what changed since the last look, and all rows if that cannot be told.
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
	took := time.Since(began)
	l.at, l.good, l.slow = began, began.Add(max(s.opts.Fresh, rest*took)), took > slowLook
	if l.noted.Load() {
		fresh := freshNoted
		if s.pool.unprepared.Load() {
			fresh = freshPlanned
		}
		l.good = began.Add(min(s.opts.Fresh, fresh))
	}
	return nil
}

// seen is what a look sees.
type seen struct {
	rows     []facts
	gone     []string // paths of rows that are not in the table
	count    int      // how many rows there are, -1 where changes are noted
	horizon  string   // look.seen
	server   string
	trigger  *string // that notes changes, nil if none does
	truncate bool    // all rows were removed
}

// readChanged reads the rows that transactions changed which the last look has not seen, or all rows. complete says that these
// were all changes. Callers must hold look.turn.
func (s *Storage) readChanged(ctx context.Context) (complete bool, err error) {
	l := &s.look
	since, asked := l.seen, s.now()
	sql := s.sql.changed
	if l.noted.Load() && since != "" {
		sql = s.sql.noted
	}
	breaks := s.pool.breaks.Load()
	var now seen
	err = s.read(ctx, readLimit, func(ctx context.Context, c conn) error {
		now = seen{}
		rows, _ := c.Query(ctx, sql, s.prefix, since, s.quoted) // rows has the error
		return now.scan(rows)
	})
	noted := now.trigger != nil
	if noted {
		now.server += " " + *now.trigger
	}
	switch {
	case err != nil && (since == "" || errors.Is(err, ErrUnreachable)):
		return false, err
	case err != nil: // it may be what notes changes that is gone
		return false, nil
	case since != "" && (now.truncate || now.server != l.server || breaks != l.breaks): // another server, or one that lost something, may use numbers of transactions again
		return false, nil
	}
	l.server, l.breaks = now.server, breaks
	l.noted.Store(noted)
	return s.store(now, asked, since == ""), nil
}

// scan reads the answer to queries.changed or queries.noted.
func (now *seen) scan(rows pgx.Rows) error {
	var path *string // of what was changed, "" for all rows; nil if nothing was
	var f maybeFacts
	_, err := pgx.ForEachRow(rows, append([]any{&now.count, &now.horizon, &now.server, &now.trigger, &path}, f.targets()...), func() error {
		switch {
		case path == nil:
		case f.path != nil:
			now.rows = append(now.rows, f.facts())
		case *path == "":
			now.truncate = true
		default:
			now.gone = append(now.gone, *path)
		}
		return nil
	})
	return err
}

// store stores what a look saw that asked when the clock was asked, of all rows or of some. It reports whether the catalogue then
// has as many rows as the table: otherwise some were removed. Callers must hold look.turn.
func (s *Storage) store(now seen, asked int64, all bool) (complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	stored := true
	for _, f := range now.rows {
		stored = s.put(f, asked) && stored
		there[f.path] = true
	}
	if all {
		for path := range s.rows {
			if !there[path] {
				now.gone = append(now.gone, path)
			}
		}
	}
	for _, path := range now.gone {
		switch r := s.rows[path]; {
		case r == nil:
		case r.told <= asked:
			s.remove(path)
		default:
			stored = false
		}
	}
	if stored { // otherwise the next look reads the same again
		s.look.seen = now.horizon
	}
	return now.count < 0 || len(s.rows) == now.count
}
