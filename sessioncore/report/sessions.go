package report

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

const (
	// maxAtOnce is how many sessions are read at once. Large ones are read by several goroutines each.
	maxAtOnce = 4
	// announced is how many sessions are announced at once. Those of a database are read in one transaction then.
	announced = 32
)

// cache keeps facts T of sessions, made of the F that read finds in a session, by the names of
// their files. Facts beyond most bytes are not kept, and made each time. A cache is safe for
// concurrent use; one caller at a time reads sessions, and the others wait.
type cache[F, T any] struct {
	store *sessioncore.Store
	read  func(context.Context, *sessioncore.Snapshot) (F, error)
	// readFile finds the F in an open file without an index; isFound is false if it cannot. It may be nil.
	readFile func(context.Context, *listing.Info, storage.Object) (of F, isFound bool, err error)

	sizeOf func(T) int
	most   int
	batch  int // number of sessions that are read before their facts are made

	mu    sync.Mutex // guards the fields below; held while sessions are read
	known map[string]cached[T]
	size  int
}

// cached has facts of a session, and the token of its file at that time.
type cached[T any] struct {
	token storage.Token
	of    T
}

// each calls do with the facts of sessions, in order, until it returns an error. Facts of a file that did not
// change are those that are kept, if isValid; others are made by factsOf. An unreadable session has the
// facts of the zero F. c.mu is held meanwhile.
// When ctx is done, the sessions that were read stay known; sessions that are gone are forgotten.
func (c *cache[F, T]) each(
	ctx context.Context, sessions []*listing.Info, isValid func(*listing.Info, T) bool,
	factsOf func(*listing.Info, *F) T, do func(*listing.Info, T) error,
) error {
	err := storage.LockUntil(ctx, &c.mu)
	if err != nil {
		return err
	}
	defer c.mu.Unlock()
	done := 0
	ahead := 0     // number of sessions that were announced
	at := int64(0) // a time before they were read, in ns since the epoch
	for batch := range slices.Chunk(sessions, c.batch) {
		if done >= ahead {
			at = time.Now().UnixNano()
			ahead = min(done+announced, len(sessions))
			c.readAhead(sessions[done:ahead])
		}
		changed, err := c.readChanged(ctx, batch)
		if err != nil {
			return err
		}
		for i, info := range batch {
			facts, ok := c.get(info)
			if ok && !isValid(info, facts) { // readChanged took them for known, and left the session out
				ok = false
				changed[i], err = c.readOne(ctx, info)
				if err != nil {
					return err
				}
			}
			if !ok {
				facts = factsOf(info, &changed[i])
				c.keep(info, at, facts)
			}
			err := do(info, facts)
			if err != nil {
				return err
			}
		}
		done += len(batch)
		storage.Progress(ctx, done, len(sessions))
	}
	c.keepOnly(sessions)
	return nil
}

// readChanged reads the sessions without facts, several at a time. The result has an F for each of sessions, which
// is the zero F for one with facts.
func (c *cache[F, T]) readChanged(ctx context.Context, sessions []*listing.Info) ([]F, error) {
	all := make([]F, len(sessions))
	// A goroutine reads several sessions, so that its stack grows once.
	workers := min(runtime.GOMAXPROCS(0), maxAtOnce)
	err := storage.Parallel(len(sessions), workers, func(i int) (err error) {
		_, isKnown := c.get(sessions[i])
		if isKnown {
			return nil
		}
		all[i], err = c.readOne(ctx, sessions[i])
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	return all, err
}

// readAhead announces the sessions without facts to the storage. An error here recurs when they are read.
func (c *cache[F, T]) readAhead(sessions []*listing.Info) {
	var err error
	defer storage.RecoverTo(&err)
	var names []string
	for _, info := range sessions {
		_, isKnown := c.get(info)
		if !isKnown {
			names = append(names, info.Name())
		}
	}
	c.store.Storage().ReadAhead(names)
}

// conversionBuffers recycles the memory for sessions that are read once.
var conversionBuffers = sync.Pool{New: func() any { return new(sessioncore.ConversionBuffer) }}

// readTries bounds the reads of a session that is overwritten meanwhile.
const readTries = 3

// readOne reads a session, again if its file is overwritten meanwhile. An unreadable session is
// skipped without an error. The store's cache stays as it is: a pass over all sessions evicts none.
func (c *cache[F, T]) readOne(ctx context.Context, info *listing.Info) (of F, err error) {
	defer storage.RecoverTo(&err)
	session := c.store.Session(info.Name())
	isCached := session.IsCached()
	if !isCached {
		defer c.store.EvictSession(session)
	}
	err = storage.ErrStale
	for n := 0; n < readTries && errors.Is(err, storage.ErrStale); n++ {
		if isCached {
			of, err = c.readCached(ctx, session)
		} else {
			of, err = c.readUncached(ctx, info)
		}
	}
	isNone := errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular)
	isUnreadable := errors.Is(err, fs.ErrPermission) || storage.IsMissing(err)
	if isNone || isUnreadable {
		err = nil
	}
	return of, err
}

// readCached reads a session that the store has.
func (c *cache[F, T]) readCached(ctx context.Context, session *sessioncore.Session) (of F, err error) {
	snap, err := session.Acquire(ctx)
	if err != nil {
		return of, err
	}
	defer snap.Release()
	return c.read(ctx, snap)
}

// readUncached reads a session from its file.
func (c *cache[F, T]) readUncached(ctx context.Context, info *listing.Info) (of F, err error) {
	file, err := c.store.Storage().Open(info.Name())
	if err != nil {
		return of, err
	}
	if c.readFile != nil {
		found, isFound, err := c.readFile(ctx, info, file)
		if isFound || err != nil {
			_ = file.Close()
			return found, err
		}
	}
	buffer := conversionBuffers.Get().(*sessioncore.ConversionBuffer)
	defer conversionBuffers.Put(buffer)
	snap, err := c.store.IndexOnce(ctx, info.Name(), file, buffer)
	if err != nil {
		return of, err
	}
	defer snap.Release()
	return c.read(ctx, snap)
}

// tokenOf returns the token of a session's file, as the list has it: the store may name states
// otherwise. It is without the size, which an agent's session has only once it is converted.
func tokenOf(info *listing.Info) storage.Token {
	token := info.Stat.Token
	token.Size = 0
	return token
}

// get returns the facts of a session's file in the state that info has; ok is false if none are kept.
func (c *cache[F, T]) get(info *listing.Info) (facts T, ok bool) {
	f, ok := c.known[info.Name()]
	return f.of, ok && f.token == tokenOf(info)
}

// keep keeps facts of a file that was read after a time, in ns since the epoch, if there is room, and if
// every later change of the file is visible. Otherwise it has none of the file.
func (c *cache[F, T]) keep(info *listing.Info, at int64, facts T) {
	name := info.Name()
	c.forget(name)
	size := len(name) + c.sizeOf(facts)
	hasRoom := c.size+size <= c.most
	if hasRoom && !info.Stat.Token.Racy(at) {
		c.known[name] = cached[T]{tokenOf(info), facts}
		c.size += size
	}
}

// forget removes the facts of a session, if it has any.
func (c *cache[F, T]) forget(name string) {
	if f, ok := c.known[name]; ok {
		c.size -= len(name) + c.sizeOf(f.of)
		delete(c.known, name)
	}
}

// keepOnly forgets the sessions that are not among sessions, as they are gone. With no more facts than sessions it
// does not look: facts of a few that are gone do no harm.
func (c *cache[F, T]) keepOnly(sessions []*listing.Info) {
	if len(c.known) <= len(sessions) {
		return
	}
	names := make(map[string]bool, len(sessions))
	for _, info := range sessions {
		names[info.Name()] = true
	}
	for name := range c.known {
		if !names[name] {
			c.forget(name)
		}
	}
}
