package report

import (
	"context"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// facts caches facts of the entries of an index: entries never change, so each is read once. The
// snapshots of one index share it.
type facts[T any] struct {
	mu     sync.Mutex // guards the fields below; held while entries are read
	looked int        // number of entries that were read
	of     T
}

// factsKey is the key of facts in Snapshot.Shared. An index can become one of another dialect.
type factsKey[T any] struct{ dialect *sessioncore.Dialect }

// factsOf returns the facts of a snapshot's entries, which are confirmed. add adds the entries from
// one on to facts of those before; its error is returned, and then no facts are kept. Callers must not
// change the facts: other snapshots share them.
func factsOf[T any](
	ctx context.Context, s *sessioncore.Snapshot,
	add func(ctx context.Context, s *sessioncore.Snapshot, from int, to *T) error,
) (of T, err error) {
	err = s.ConfirmAll(ctx)
	if err != nil {
		return of, err
	}
	f := s.Shared(factsKey[T]{s.Dialect()}, func() any {
		return &facts[T]{}
	}).(*facts[T])
	err = storage.LockUntil(ctx, &f.mu)
	if err != nil {
		return of, err
	}
	defer f.mu.Unlock()
	from := f.looked
	if from > s.Len() { // the snapshot is older than the facts
		err = add(ctx, s, 0, &of)
		return of, err
	}
	of = f.of
	f.looked = 0
	f.of = *new(T) // which stays where add fails: some entries may have been added
	err = add(ctx, s, from, &of)
	if err != nil {
		return of, err
	}
	f.looked = s.Len()
	f.of = of
	return of, nil
}
