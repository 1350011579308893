package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// Converted is a prompt history in several files that Append converts to the form of Lines.
type Converted struct {
	Files storage.Files
	// Names returns the names of the files, in order. They need not exist.
	Names func() []string
	// Append appends the prompts in a file's text in the form of Lines.
	Append func(dst []byte, name string, text []byte) []byte
	// subject begins the error for prompts that are too big; "" for "the prompts have".
	subject string
}

// State implements History.
func (m Converted) State() (all State, err error) {
	missing := fs.ErrNotExist
	for _, name := range m.Names() {
		s, err := stateOf(m.Files, name)
		switch st := &all.database; {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return State{}, err
		case missing != nil:
			missing, all = nil, s
		default:
			st.Size += s.database.Size
			st.Inode = st.Inode*31 + s.database.Inode
			st.Modified = max(st.Modified, s.database.Modified)
			st.Changed = max(st.Changed, s.database.Changed)
		}
	}
	return all, missing
}

// Render implements History.
func (m Converted) Render(ctx context.Context, match string, hold *budget.Hold) (r Rendering, err error) {
	defer closeAfter(&err, hold)
	at := time.Now()
	state, err := m.State()
	if err != nil {
		return r, err
	}
	if size := state.database.Size; size > maxFileBytes {
		subject := cmp.Or(m.subject, "the prompts have")
		return r, fmt.Errorf("%w: %s %d MiB, and may have %d", ErrTooBig, subject, size>>20, maxFileBytes>>20)
	}
	room := hold.Another()
	defer room.Close()
	if err := room.Resize(2 * state.database.Size); err != nil {
		return r, err
	}
	var all []byte
	for _, name := range m.Names() {
		text, err := storage.ReadFile(m.Files, name, maxFileBytes)
		if err == nil {
			all = m.Append(all, name, text)
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storage.ErrNotRegular) {
			return r, err
		}
	}
	out := &lines{hold: hold}
	return out.render(ctx, match, all, state, at)
}
