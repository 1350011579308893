package costs

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

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
	// batchSize is how many sessions are read before they are added up, and maxAtOnce how many of these at once; large
	// ones are read by several goroutines each.
	batchSize = 8
	maxAtOnce = 4
	// readTries is how often a session is read that is overwritten meanwhile.
	readTries = 3
)

// readAll reads those of the sessions that are not known, several at a time.
func (c *Costs) readAll(ctx context.Context, sessions []*listing.Info) ([]reading, error) {
	read := make([]reading, len(sessions))
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(min(runtime.GOMAXPROCS(0), maxAtOnce))
	for i, info := range sessions {
		if !c.known[info.Name].isOf(info.Stat.Token) {
			running.Go(func() (err error) {
				read[i], err = c.readOne(ctx, info)
				return err
			})
		}
	}
	return read, running.Wait()
}

// readOne reads what the entries of a session cost. One that cannot be read has none.
func (c *Costs) readOne(ctx context.Context, info *listing.Info) (r reading, err error) {
	defer storage.RecoverTo(&err)
	for range readTries {
		if r, err = readOnce(ctx, c.store.Session(info.Name), c.prices); !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	if errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) || errors.Is(err, fs.ErrPermission) || storage.IsMissing(err) {
		return reading{token: info.Stat.Token, settled: !info.Stat.Token.Racy(time.Now().UnixNano())}, nil
	}
	return r, err
}

func readOnce(ctx context.Context, session *sessioncore.Session, prices report.Prices) (r reading, err error) {
	at := time.Now().UnixNano()
	snap, err := session.Acquire(ctx)
	if err != nil {
		return r, err
	}
	defer snap.Release()
	r.token = snap.Stat().Token
	r.settled = !r.token.Racy(at)
	r.costs, err = report.Costs(ctx, snap, prices)
	return r, err
}
