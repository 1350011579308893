package history

import (
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
}

// State implements History.
func (m Converted) State() (all State, err error) {
	all.database.Kind = storage.KindFile
	missing := fs.ErrNotExist
	for _, name := range m.Names() {
		s, err := stateOf(m.Files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return State{}, err
		}
		st := s.Stat()
		missing, all.database.Device, all.database.Size = nil, st.Device, all.database.Size+st.Size
		all.database.Inode = all.database.Inode*31 + st.Inode
		all.database.Modified = max(all.database.Modified, st.Modified)
		all.database.Changed = max(all.database.Changed, st.Changed)
	}
	return all, missing
}

// Render implements History.
func (m Converted) Render(ctx context.Context, match string, hold *budget.Hold) (Rendering, error) {
	return renderOrClose(hold, func(out *lines) (Rendering, error) { return m.render(ctx, match, out) })
}

func (m Converted) render(ctx context.Context, match string, out *lines) (r Rendering, err error) {
	at := time.Now()
	state, err := m.State()
	if err != nil {
		return r, err
	}
	if size := state.database.Size; size > maxFileBytes {
		return r, fmt.Errorf("%w: the prompts have %d MiB, and may have %d", ErrTooBig, size>>20, maxFileBytes>>20)
	}
	room := out.hold.Another()
	defer room.Close()
	if err := room.Resize(2 * state.database.Size); err != nil {
		return r, err
	}
	var all []byte
	for _, name := range m.Names() {
		text, err := m.read(name)
		if err != nil {
			return r, err
		}
		all = m.Append(all, name, text)
	}
	return out.render(ctx, match, all, state, at)
}

// read returns the text of a file, nil for a missing one.
func (m Converted) read(name string) ([]byte, error) {
	obj, err := m.Files.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrNotRegular) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(st.Size, maxFileBytes))
	return text, storage.ReadFull(obj, text, 0)
}
