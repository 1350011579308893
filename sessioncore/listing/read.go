package listing

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// State is the state of a session's file of which something was made.
type State struct {
	token   storage.Token
	Settled bool // any later change would be seen
}

// Is reports whether the file is in that state now. Sizes tell no more than the rest, and that of a session of another agent
// is known only once it was read.
func (s State) Is(now storage.Token) bool {
	now.Size = 0
	return s.Settled && s.token == now
}

// StateAt returns the State of a file that was looked at at a time, in ns since the epoch.
func StateAt(token storage.Token, lookedAt int64) State {
	settled := !token.Racy(lookedAt)
	token.Size = 0
	return State{token, settled}
}

// readTries is how often a session is read that is overwritten meanwhile.
const readTries = 3

// Read calls do with a session as it is now, once more if its file is overwritten meanwhile. One that cannot be read has
// nothing, which is no error.
func Read(ctx context.Context, store *sessioncore.Store, info *Info, do func(*sessioncore.Snapshot) error) (s State, err error) {
	defer storage.RecoverTo(&err)
	for range readTries {
		if s, err = readOnce(ctx, store, store.Session(info.Name()), do); !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	if errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) || errors.Is(err, fs.ErrPermission) || storage.IsMissing(err) {
		return StateAt(info.Stat.Token, time.Now().UnixNano()), nil
	}
	return s, err
}

// readOnce leaves the store as it is: a pass over all sessions must not push out those that somebody works with.
func readOnce(ctx context.Context, store *sessioncore.Store, session *sessioncore.Session, do func(*sessioncore.Snapshot) error) (State, error) {
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
