package promptdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/storage"
)

// Names of the database's files.
const (
	databaseName = "history.db"
	walName      = databaseName + "-wal"
)

// maxTime bounds a read with all its attempts. 100,000 prompts take a third of a second.
const maxTime = 10 * time.Second

// PromptDatabase is the history that omp keeps in SQLite.
type PromptDatabase struct {
	files storage.Files
	limit time.Duration // maxTime, or less in tests
	turn  chan struct{} // full during a read of up to maxMemory; others wait
}

var _ history.History = (*PromptDatabase)(nil)

// New returns the history in the database in files, which need not exist.
func New(files storage.Files) *PromptDatabase {
	return &PromptDatabase{files: files, limit: maxTime, turn: make(chan struct{}, 1)}
}

// State implements history.History.
func (h *PromptDatabase) State() (history.State, error) {
	s, err := history.StateOf(h.files, databaseName)
	if err != nil {
		return s, err
	}
	wal, err := h.files.Stat(walName)
	if err == nil && wal.Kind == storage.KindFile {
		s = s.WithLog(wal.Token)
	}
	return s, nil
}

// Render implements history.History.
func (h *PromptDatabase) Render(ctx context.Context, match string, hold *budget.Hold) (history.Rendering, error) {
	out := &history.PromptLines{Hold: hold}
	state, isSettled, err := h.read(ctx, match, out)
	if err != nil {
		hold.Close()
		return history.Rendering{}, err
	}
	return history.Rendering{Text: out.Bytes(), State: state, Settled: isSettled}, nil
}

// read runs a query within the limits. It returns the state from before, which is settled if each later change
// makes another one.
func (h *PromptDatabase) read(request context.Context, match string, out *history.PromptLines) (state history.State, isSettled bool, err error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-request.Done():
		return state, false, request.Err()
	}
	ctx, cancel := context.WithTimeout(request, h.limit)
	defer cancel()
	at := time.Now()
	state, err = h.State()
	if err != nil {
		return state, false, err
	}
	isSettled = state.Stat().Token.Settling(at) == 0
	err = h.queryWithin(ctx, match, out)
	switch {
	case request.Err() != nil:
		err = request.Err()
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: more than %v", history.ErrTooSlow, h.limit)
	}
	return state, isSettled, err
}

// queryWithin writes the result of a query to out. It doubles the connection's memory until it suffices.
func (h *PromptDatabase) queryWithin(ctx context.Context, match string, out *history.PromptLines) error {
	hold := out.Hold.Another()
	defer hold.Close()
	size := int64(firstMemory)
	for {
		err := hold.Resize(size)
		if err != nil {
			return err
		}
		err = h.query(ctx, match, out, size)
		if size >= maxMemory || out.IsFull() || !errors.Is(err, budget.ErrNoMemory) {
			return err
		}
		size *= 2
	}
}
