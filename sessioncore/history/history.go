package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

var (
	// ErrQuery means that the query contains no word and is not a valid FTS5 query.
	ErrQuery = errors.New("not a search query")
	// ErrTooBig means that a value, the answer, or the files are longer than their bound.
	ErrTooBig = errors.New("the prompt history is too big")
	// ErrTooSlow means that the answer took too much time.
	ErrTooSlow = errors.New("reading the prompt history takes too long")
	// ErrUnreadable means that the file is not a database, is damaged, or is not the client's.
	ErrUnreadable = errors.New("the prompt history cannot be read")
)

// History is the prompt history of a SOURCE. It is safe for concurrent use.
type History interface {
	// State returns the current state of the files. The error wraps fs.ErrNotExist if there is no
	// history or it is not a regular file.
	State() (State, error)
	// Render returns the prompts with all words of match, else those that match it as an FTS5
	// query, or all prompts for "": one JSON object per line, newest first, as the client lists
	// them. hold accounts for the text; it may be nil, and is closed after an error.
	//
	// Errors wrap fs.ErrNotExist, an error of this package, budget.ErrNoMemory or a storage error.
	Render(ctx context.Context, match string, hold *budget.Hold) (Rendering, error)
}

// State identifies a state of a history: of settled Renderings, equal States mean equal content.
type State struct {
	database storage.Stat  // or of the file of lines
	wal      storage.Token // zero if there is no log
	parts    uint64        // of several histories: a hash of their states
}

// Stat returns the database's Stat with the times of the last change of it or its log.
func (s State) Stat() storage.Stat {
	st := s.database
	st.Modified = max(st.Modified, s.wal.Modified)
	st.Changed = max(st.Changed, s.wal.Changed)
	return st
}

// WithLog returns the joint state of a database and its log.
func (s State) WithLog(log storage.Token) State {
	s.wal = log
	return s
}

// StateOf returns the state of the history in a file. The error wraps fs.ErrNotExist if it is no regular
// file.
func StateOf(files storage.Files, name string) (State, error) {
	st, err := files.Stat(name)
	if err != nil {
		return State{}, err
	}
	if st.Kind != storage.KindFile {
		return State{}, fmt.Errorf("%w: %s is not a file", fs.ErrNotExist, name)
	}
	return State{database: st}, nil
}

// Rendering is the result of History.Render.
type Rendering struct {
	Text  []byte
	State State // of the database when it was read
	// Settled reports that any later change of the database changes its State. It is false for some
	// milliseconds after a change if the file system's clock is coarse.
	Settled bool
}
