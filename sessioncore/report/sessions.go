package report

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// maxAtOnce is how many sessions are read at once. Large ones are read by several goroutines each.
const maxAtOnce = 4

// register keeps facts T of sessions, made of the F that read finds in a session, by the names of
// their files. Facts beyond most bytes are not kept, and made each time. A register is safe for
// concurrent use; one caller at a time reads sessions, and the others wait.
type register[F, T any] struct {
	store  *sessioncore.Store
	read   func(context.Context, *sessioncore.Snapshot) (F, error)
	sizeOf func(T) int
	most   int
	batch  int // number of sessions that are read before their facts are made

	mu    sync.Mutex // guards the fields below; held while sessions are read
	known map[string]fact[T]
	size  int
}

// fact has facts of a session whose file had a token.
type fact[T any] struct {
	token storage.Token
	of    T
}

// each calls do with the facts of sessions, in order. Facts of a file that did not change are those
// that are kept, if they are valid; others are made. An unreadable session has those of the zero F.
// When ctx is done, the sessions that were read stay known; those that are gone are forgotten.
func (r *register[F, T]) each(
	ctx context.Context, sessions []*listing.Info, isValid func(*listing.Info, T) bool,
	factsOf func(*listing.Info, *F) T, do func(*listing.Info, T) error,
) error {
	if err := storage.LockUntil(ctx, &r.mu); err != nil {
		return err
	}
	defer r.mu.Unlock()
	done := 0
	for batch := range slices.Chunk(sessions, r.batch) {
		at := time.Now().UnixNano()
		changed, err := r.readChanged(ctx, batch)
		if err != nil {
			return err
		}
		for i, info := range batch {
			facts, ok := r.get(info)
			if ok && !isValid(info, facts) {
				ok = false
				if changed[i], err = r.readOne(ctx, info); err != nil {
					return err
				}
			}
			if !ok {
				facts = factsOf(info, &changed[i])
				r.keep(info, at, facts)
			}
			if err := do(info, facts); err != nil {
				return err
			}
		}
		done += len(batch)
		storage.Progress(ctx, done, len(sessions))
	}
	r.keepOnly(sessions)
	return nil
}

// readChanged reads the sessions without facts, several at a time.
func (r *register[F, T]) readChanged(ctx context.Context, sessions []*listing.Info) ([]F, error) {
	all := make([]F, len(sessions))
	running, within := errgroup.WithContext(ctx)
	running.SetLimit(min(runtime.GOMAXPROCS(0), maxAtOnce))
	for i, info := range sessions {
		if _, ok := r.get(info); !ok {
			running.Go(func() (err error) {
				all[i], err = r.readOne(within, info)
				return err
			})
		}
	}
	return all, cmp.Or(running.Wait(), ctx.Err())
}

// readTries bounds the reads of a session that is overwritten meanwhile.
const readTries = 3

// readOne reads a session, again if its file is overwritten meanwhile. An unreadable session is
// skipped without an error. The store's cache stays as it is: a pass over all sessions evicts none.
func (r *register[F, T]) readOne(ctx context.Context, info *listing.Info) (of F, err error) {
	defer storage.RecoverTo(&err)
	session := r.store.Session(info.Name())
	if !session.IsCached() {
		defer r.store.EvictSession(session)
	}
	try := func() error {
		snap, err := session.Acquire(ctx)
		if err != nil {
			return err
		}
		defer snap.Release()
		of, err = r.read(ctx, snap)
		return err
	}
	err = storage.ErrStale
	for n := 0; n < readTries && errors.Is(err, storage.ErrStale); n++ {
		err = try()
	}
	if errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) ||
		errors.Is(err, fs.ErrPermission) || storage.IsMissing(err) {
		err = nil
	}
	return of, err
}

// tokenOf returns the token of a session's file, as the list has it: the store may name states
// otherwise. It is without the size, which an agent's session has only once it is converted.
func tokenOf(info *listing.Info) storage.Token {
	token := info.Stat.Token
	token.Size = 0
	return token
}

// get returns the facts of a session's file in its present state.
func (r *register[F, T]) get(info *listing.Info) (facts T, ok bool) {
	f, ok := r.known[info.Name()]
	return f.of, ok && f.token == tokenOf(info)
}

// keep keeps facts of a file that was read after a time, if there is room, and if every later
// change of the file is visible.
func (r *register[F, T]) keep(info *listing.Info, at int64, facts T) {
	name := info.Name()
	r.forget(name)
	if size := len(name) + r.sizeOf(facts); !info.Stat.Token.Racy(at) && r.size+size <= r.most {
		r.known[name] = fact[T]{tokenOf(info), facts}
		r.size += size
	}
}

func (r *register[F, T]) forget(name string) {
	if f, ok := r.known[name]; ok {
		r.size -= len(name) + r.sizeOf(f.of)
		delete(r.known, name)
	}
}

// keepOnly forgets the sessions that are gone.
func (r *register[F, T]) keepOnly(sessions []*listing.Info) {
	if len(r.known) <= len(sessions) {
		return
	}
	names := make(map[string]bool, len(sessions))
	for _, info := range sessions {
		names[info.Name()] = true
	}
	for name := range r.known {
		if !names[name] {
			r.forget(name)
		}
	}
}
