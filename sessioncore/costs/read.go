package costs

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
)

// reading is what was read of one state of a session.
type reading struct {
	listing.State
	costs report.Costs
}

const (
	// batchSize is how many sessions are read before they are added up, and maxAtOnce how many of these at once; large
	// ones are read by several goroutines each.
	batchSize = 8
	maxAtOnce = 4
)

// readAll reads those of the sessions that are not known, several at a time.
func (c *Costs) readAll(ctx context.Context, sessions []*listing.Info) ([]reading, error) {
	read := make([]reading, len(sessions))
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(min(runtime.GOMAXPROCS(0), maxAtOnce))
	for i, info := range sessions {
		if !c.known[info.Name()].isOf(info.Stat.Token) {
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
	at := time.Now().UnixNano()
	_, err = listing.Read(ctx, c.store, info, func(snap *sessioncore.Snapshot) (err error) {
		r.costs, err = c.of(ctx, snap)
		return err
	})
	r.State = listing.StateAt(info.Stat.Token, at) // c.store may name states otherwise than the list
	return r, err
}
