package lost

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

const (
	// maxRows bounds the table.
	maxRows = 10_000
	// maxKept bounds what is kept of sessions, in bytes. What is beyond is read again each time.
	maxKept = 8 << 20
	// tipSize and tipsSize are what a tip takes in memory, with its text, and what is kept of a session without any.
	tipSize  = 400
	tipsSize = 200
	// batchSize is how many sessions are read before they are kept, and maxAtOnce how many of these at once.
	batchSize = 64
	maxAtOnce = 4
)

// Lost finds tips. It is safe for concurrent use; one caller at a time looks at the sessions, and the others wait.
type Lost struct {
	store *sessioncore.Store

	mu    sync.Mutex // guards the fields below; held while sessions are read
	known map[string]tips
	size  int // of known, in bytes
}

// tips are those of a session, in a state of its file.
type tips struct {
	listing.State
	all []report.LostTip
}

// New returns the Lost of a store's sessions.
func New(store *sessioncore.Store) *Lost { return &Lost{store: store, known: map[string]tips{}} }

// Table returns lost.tsv for these sessions. Those that cannot be read are left out. What is needed for the time of the call is
// counted in hold. When ctx is done, what was read is kept.
func (l *Lost) Table(ctx context.Context, sessions []*listing.Info, hold *budget.Hold) ([]byte, error) {
	if err := storage.LockUntil(ctx, &l.mu); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	defer hold.Set(0)
	before := l.known
	l.known, l.size = map[string]tips{}, 0 // sessions that are gone are forgotten
	var all []row
	more := false
	for batch := range slices.Chunk(sessions, batchSize) {
		read, err := l.read(ctx, batch, before)
		if err != nil {
			for name, t := range before {
				l.keep(name, t)
			}
			return nil, err
		}
		for i, info := range batch {
			l.keep(info.Name(), read[i])
			for _, t := range read[i].all {
				all = append(all, row{info, t})
			}
			if len(all) > 2*maxRows {
				all, more = newest(all), true
			}
		}
		if err := hold.Resize(int64(cap(all)) * tipSize); err != nil {
			return nil, err
		}
	}
	more = more || len(all) > maxRows
	return table(newest(all), more), nil
}

// read returns the tips of some sessions, which are read unless they are known.
func (l *Lost) read(ctx context.Context, sessions []*listing.Info, known map[string]tips) ([]tips, error) {
	read := make([]tips, len(sessions))
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(min(runtime.GOMAXPROCS(0), maxAtOnce))
	for i, info := range sessions {
		if read[i] = known[info.Name()]; read[i].Is(info.Stat.Token) {
			continue
		}
		running.Go(func() (err error) {
			read[i].State, err = listing.Read(ctx, l.store, info, func(snap *sessioncore.Snapshot) (err error) {
				read[i].all, err = report.Lost(ctx, snap, maxRows)
				return err
			})
			return err
		})
	}
	return read, running.Wait()
}

// keep keeps the tips of a session, if there is room.
func (l *Lost) keep(name string, t tips) {
	size := tipsSize + len(t.all)*tipSize
	if _, ok := l.known[name]; !ok && t.Settled && l.size+size <= maxKept {
		l.known[name] = t
		l.size += size
	}
}

// row is a line of the table.
type row struct {
	session *listing.Info
	report.LostTip
}

// newest returns the rows that are shown, in their order.
func newest(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.session.Name(), b.session.Name()), cmp.Compare(a.Name, b.Name))
	})
	return rows[:min(len(rows), maxRows)]
}

func table(rows []row, more bool) []byte {
	out := []byte("time\tsession\tid\tpath\tsaid\n")
	for _, r := range rows {
		path := r.session.Path() + "/branches/" + r.Name
		out = names.AppendLabelFields(out, r.Time.UTC().Format(rawjson.TimestampLayout), cmp.Or(r.session.DisplayName(), "-"), r.Name, path, cmp.Or(r.Said, "-"))
	}
	if more {
		out = names.AppendLabelFields(out, "-", "-", "-", "-", fmt.Sprintf("there are more than these %d, which are the newest", maxRows))
	}
	return out
}
