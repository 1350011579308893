package costs

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// reading is what was read of one state of a session.
type reading struct {
	token   storage.Token
	settled bool // a change after this state would be seen
	costs   []report.Cost
}

const (
	// maxShared is up to how many sessions are read through the store that everybody uses. It knows how those that grew
	// were before. More would push out of it what others are reading.
	maxShared = 16
	// maxAtOnce is how many sessions are read at once; large ones are read by several goroutines each.
	maxAtOnce = 4
	// readTries is how often a session is read that is overwritten meanwhile.
	readTries = 3
)

// readings are sessions that are being read. Their results come in order.
type readings struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	results chan chan result
}

type result struct {
	reading
	err error
}

// readAll begins to read sessions, several at a time. The caller must call next for each, or stop.
func (c *Costs) readAll(ctx context.Context, sessions []*listing.Info) *readings {
	r := &readings{results: make(chan chan result, min(runtime.GOMAXPROCS(0), maxAtOnce)-1)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	store := c.store
	if len(sessions) > maxShared {
		store = sessioncore.NewStore(c.store.Storage())
	}
	r.running.Go(func() {
		for _, info := range sessions {
			one := make(chan result, 1)
			if r.ctx.Err() != nil {
				return
			}
			select {
			case r.results <- one:
			case <-r.ctx.Done():
				return
			}
			r.running.Go(func() {
				read, err := readOne(r.ctx, store, info)
				if store != c.store {
					store.Session(info.Name).Drop()
				}
				one <- result{read, err}
			})
		}
	})
	return r
}

func (r *readings) next() (reading, error) {
	select {
	case one := <-r.results:
		result := <-one
		return result.reading, result.err
	case <-r.ctx.Done():
		return reading{}, r.ctx.Err()
	}
}

func (r *readings) stop() {
	r.cancel()
	r.running.Wait()
}

// readOne reads what the entries of a session cost. One that cannot be read has none.
func readOne(ctx context.Context, store *sessioncore.Store, info *listing.Info) (r reading, err error) {
	defer storage.RecoverTo(&err)
	for range readTries {
		if r, err = readOnce(ctx, store.Session(info.Name)); !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	if errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) || errors.Is(err, fs.ErrPermission) || storage.IsMissing(err) {
		return reading{token: info.Stat.Token, settled: !info.Stat.Token.Racy(time.Now().UnixNano())}, nil
	}
	return r, err
}

func readOnce(ctx context.Context, session *sessioncore.Session) (r reading, err error) {
	at := time.Now().UnixNano()
	snap, err := session.Acquire(ctx)
	if err != nil {
		return r, err
	}
	defer snap.Release()
	r.token = snap.Stat().Token
	r.settled = !r.token.Racy(at)
	r.costs, err = report.Costs(ctx, snap)
	return r, err
}
