package postgres

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// look is what is known of when the table was last looked at.
type look struct {
	mu   sync.Mutex // guards the fields below; held during a look
	at   time.Time  // when the last one began
	seen string     // the transaction from which on changes were not seen, as PostgreSQL writes an xid; "" before the first
	full bool       // the next one reads all rows
	told int64      // listener.told before the last one
}

// refresh brings the catalogue up to date if the last look is too old. Where the database cannot be reached, the catalogue
// stays as it was.
func (s *Storage) refresh() error {
	asked := time.Now()
	if s.broken.Load() != nil {
		return nil
	}
	s.look.mu.Lock()
	defer s.look.mu.Unlock()
	fresh := s.opts.Fresh > 0 && asked.Sub(s.look.at) < s.opts.Fresh && s.look.told == s.listener.told.Load()
	if s.look.at.After(asked) || fresh || s.broken.Load() != nil {
		return nil
	}
	err := s.noted(s.lookLocked(context.Background()))
	if errors.Is(err, ErrUnreachable) {
		return nil
	}
	return err
}

// lookAgain makes the next refresh look at the table, where something was not as it was known.
func (s *Storage) lookAgain() { s.listener.told.Add(1) }

// lookNow looks at the table.
func (s *Storage) lookNow(ctx context.Context) error {
	s.look.mu.Lock()
	defer s.look.mu.Unlock()
	return s.lookLocked(ctx)
}

// lookLocked reads what changed since the last look, and all rows if some are gone. Callers must hold look.mu.
func (s *Storage) lookLocked(ctx context.Context) error {
	began, told := time.Now(), s.listener.told.Load()
	if !s.look.full && s.look.seen != "" {
		complete, err := s.readChanged(ctx, s.look.seen)
		if err != nil {
			return err
		}
		if complete {
			s.look.at, s.look.told = began, told
			return nil
		}
	}
	if _, err := s.readChanged(ctx, ""); err != nil {
		s.look.full = true
		return err
	}
	s.look.at, s.look.full, s.look.told = began, false, told
	return nil
}

// readChanged reads the rows that transactions changed which since has not seen, or all rows if it is "". complete says
// that the catalogue has as many rows as the table then: none was removed. Callers must hold look.mu.
func (s *Storage) readChanged(ctx context.Context, since string) (complete bool, err error) {
	var after *string // NULL for all
	if since != "" {
		after = &since
	}
	var found []facts
	var count int
	var seen, channel string
	asked := s.now()
	err = s.read(ctx, func(ctx context.Context, c conn) error {
		found = found[:0]
		rows, err := c.Query(ctx, s.sql.changed, s.prefix, after, s.quoted)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var f maybeFacts
			if err := rows.Scan(append([]any{&count, &seen, &channel}, f.targets()...)...); err != nil {
				return err
			}
			if f.path != nil {
				found = append(found, f.facts())
			}
		}
		return rows.Err()
	})
	if err != nil {
		return false, err
	}
	if channel != "" && !s.listener.on {
		s.listener.on = true
		s.work(func() { s.listen(channel) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	stored := true
	for _, f := range found {
		stored = s.put(f, asked) && stored
		there[f.path] = true
	}
	if since == "" {
		for path, r := range s.rows {
			if !there[path] && r.told <= asked {
				s.remove(path)
			}
		}
	}
	if stored { // otherwise the next look reads the same again
		s.look.seen = xid(seen)
	}
	return len(s.rows) == count, nil
}

// xid returns the 32 bits of a transaction's number that rows have.
func xid(text string) string {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(uint64(uint32(n)), 10)
}

// maybeFacts are the columns of a row, NULL where there is none.
type maybeFacts struct {
	path, version *string
	size, mtime   *int64
	title         title
}

func (f *maybeFacts) targets() []any {
	return []any{&f.path, &f.version, &f.size, &f.mtime, &f.title.text, &f.title.source, &f.title.updated}
}

func (f *maybeFacts) facts() facts {
	return facts{path: *f.path, version: *f.version, size: *f.size, mtime: *f.mtime, title: f.title}
}
