package listing

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// State is the state of a session's file for a derived result.
type State struct {
	token   storage.Token
	Settled bool // every later change is visible
}

// Is reports whether the file is in the state now. Sizes are not compared, as an agent's session
// has its size only once it is converted.
func (s State) Is(now storage.Token) bool {
	now.Size = 0
	return s.Settled && s.token == now
}

// StateAt returns the State of a file read at a time in ns since the epoch.
func StateAt(token storage.Token, readAt int64) State {
	settled := !token.Racy(readAt)
	token.Size = 0
	return State{token, settled}
}

// readTries bounds the reads of a session that is overwritten meanwhile.
const readTries = 3

// Read calls do with a session's snapshot, again if its file is overwritten meanwhile. An
// unreadable session is skipped without an error.
func Read(
	ctx context.Context, store *sessioncore.Store, info *Info, do func(*sessioncore.Snapshot) error,
) (s State, err error) {
	defer storage.RecoverTo(&err)
	for range readTries {
		if s, err = readOnce(ctx, store, store.Session(info.Name()), do); !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	if errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) ||
		errors.Is(err, fs.ErrPermission) || storage.IsMissing(err) {
		return StateAt(info.Stat.Token, time.Now().UnixNano()), nil
	}
	return s, err
}

// readOnce leaves the store's cache unchanged: a pass over all sessions evicts none.
func readOnce(
	ctx context.Context, store *sessioncore.Store, session *sessioncore.Session, do func(*sessioncore.Snapshot) error,
) (State, error) {
	at := time.Now().UnixNano()
	if !session.IsCached() {
		defer store.EvictSession(session)
	}
	snap, err := session.Acquire(ctx)
	if err != nil {
		return State{}, err
	}
	defer snap.Release()
	return StateAt(snap.Stat().Token, at), do(snap)
}
