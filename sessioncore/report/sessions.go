package report

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// maxAtOnce is how many sessions are read at once. Large ones are read by several goroutines each.
const maxAtOnce = 4

// reading has facts of a session, in a state of its file.
type reading[T any] struct {
	token   storage.Token // without the size, which an agent's session has only once it is converted
	settled bool          // every later change of the file is visible
	of      T
}

// isOf reports whether the file is in the state of the reading still.
func (r *reading[T]) isOf(now storage.Token) bool {
	now.Size = 0
	return r.settled && r.token == now
}

// readSessions reads some sessions, several at a time, except those that isKnown. One that cannot
// be read has the zero T.
func readSessions[T any](
	ctx context.Context, store *sessioncore.Store, sessions []*listing.Info, isKnown func(*listing.Info) bool,
	read func(context.Context, *sessioncore.Snapshot) (T, error),
) ([]reading[T], error) {
	all := make([]reading[T], len(sessions))
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(min(runtime.GOMAXPROCS(0), maxAtOnce))
	for i, info := range sessions {
		if isKnown(info) {
			continue
		}
		running.Go(func() error {
			at, r := time.Now().UnixNano(), &all[i]
			err := readSession(ctx, store.Session(info.Name()), store, func(snap *sessioncore.Snapshot) (err error) {
				r.of, err = read(ctx, snap)
				return err
			})
			r.token = info.Stat.Token // the store may name states otherwise than the list
			r.settled, r.token.Size = !r.token.Racy(at), 0
			return err
		})
	}
	return all, running.Wait()
}

// readTries bounds the reads of a session that is overwritten meanwhile.
const readTries = 3

// readSession calls do with a session's snapshot, again if its file is overwritten meanwhile. An
// unreadable session is skipped without an error. The store's cache stays as it is: a pass over all
// sessions evicts none.
func readSession(
	ctx context.Context, session *sessioncore.Session, store *sessioncore.Store, do func(*sessioncore.Snapshot) error,
) (err error) {
	defer storage.RecoverTo(&err)
	if !session.IsCached() {
		defer store.EvictSession(session)
	}
	try := func() error {
		snap, err := session.Acquire(ctx)
		if err != nil {
			return err
		}
		defer snap.Release()
		return do(snap)
	}
	err = storage.ErrStale
	for n := 0; n < readTries && errors.Is(err, storage.ErrStale); n++ {
		err = try()
	}
	if errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) ||
		errors.Is(err, fs.ErrPermission) || storage.IsMissing(err) {
		return nil
	}
	return err
}

// cache keeps readings by the names of the sessions' files, up to a number of bytes. Others are
// read each time.
type cache[T any] struct {
	kept       map[string]reading[T]
	size, most int
	sizeOf     func(T) int
}

func newCache[T any](most int, sizeOf func(T) int) cache[T] {
	return cache[T]{kept: map[string]reading[T]{}, most: most, sizeOf: sizeOf}
}

// get returns the facts of a session's file in its present state.
func (c *cache[T]) get(info *listing.Info) (of T, ok bool) {
	r := c.kept[info.Name()]
	return r.of, r.isOf(info.Stat.Token)
}

func (c *cache[T]) has(info *listing.Info) bool {
	_, ok := c.get(info)
	return ok
}

// keep keeps a reading, if there is room.
func (c *cache[T]) keep(name string, r reading[T]) {
	c.forget(name)
	if size := len(name) + c.sizeOf(r.of); c.size+size <= c.most {
		c.kept[name] = r
		c.size += size
	}
}

func (c *cache[T]) forget(name string) {
	if r, ok := c.kept[name]; ok {
		c.size -= len(name) + c.sizeOf(r.of)
		delete(c.kept, name)
	}
}

// keepOnly forgets the sessions that are gone.
func (c *cache[T]) keepOnly(sessions []*listing.Info) {
	if len(c.kept) <= len(sessions) {
		return
	}
	names := make(map[string]bool, len(sessions))
	for _, info := range sessions {
		names[info.Name()] = true
	}
	for name := range c.kept {
		if !names[name] {
			c.forget(name)
		}
	}
}
