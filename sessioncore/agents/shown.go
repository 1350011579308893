package agents

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sessionfs/sessioncore/storage"
)

// Shown limits an agent's files to its sessions, which lie in directories, and files beside them.
type Shown struct {
	storage.Files
	Format Format
}

// bill returns the same sessions in the form for a bill, if they have one.
func (s Shown) bill() Shown {
	billed, ok := s.Files.(Billed)
	if ok {
		s.Files = billed.Bill()
	}
	return s
}

const (
	// idSize is the length of a UUID, the name of a directory beside a session. Old stores use the session's
	// name.
	idSize        = 36
	sessionEnding = ".jsonl"
)

// has reports whether an existing name of a kind is shown: a directory at the root, a session in one, and all in a
// directory beside a session. Composed files have no others.
func (s Shown) has(name string, kind storage.Kind) bool {
	_, isComposed := s.Files.(Composed)
	if isComposed {
		return true
	}
	dir, below, isBelow := strings.Cut(name, "/")
	base, _, isDeep := strings.Cut(below, "/")
	switch {
	case !isBelow:
		return kind == storage.KindDir
	case !isDeep && s.Format.IsSession(name):
		return kind == storage.KindFile
	}
	if !isDeep && kind != storage.KindDir {
		return false
	}
	hasID := len(base) == idSize // the directory may outlive the session of its id
	return hasID || s.isBeside(path.Join(dir, base))
}

// isBeside reports whether a directory lies beside a session of its name.
func (s Shown) isBeside(dir string) bool {
	st, err := s.Files.Stat(dir + sessionEnding)
	return err == nil && st.Kind == storage.KindFile && s.Format.IsSession(dir+sessionEnding)
}

// List implements storage.Files.
func (s Shown) List(dir string, only []string, f func(storage.Item) bool) error {
	if dir != "" && !s.has(dir, storage.KindDir) {
		return Missing(dir)
	}
	_, isComposed := s.Files.(Composed)
	if isComposed {
		return s.Files.List(dir, only, f)
	}
	var others []string // directories without an id, which a look for their sessions tells; many have none
	stopped := false
	isAtRoot := dir != "" && !strings.Contains(dir, "/")
	err := s.Files.List(dir, only, func(item storage.Item) bool {
		hasID := len(item.Name) == idSize
		if isAtRoot && item.Kind == storage.KindDir && !hasID {
			others = append(others, item.Name)
			return true
		}
		isShown := s.has(path.Join(dir, item.Name), item.Kind)
		if isShown {
			stopped = !f(item)
		}
		return !stopped
	})
	if err != nil || stopped {
		return err
	}
	return storage.ListOnly(s, dir, others, f)
}

// Stat implements storage.Files.
func (s Shown) Stat(name string) (storage.Stat, error) {
	st, err := s.Files.Stat(name)
	if err == nil && name != "" && !s.has(name, st.Kind) {
		return storage.Stat{}, Missing(name)
	}
	return st, err
}

// Open implements storage.Files.
func (s Shown) Open(name string) (storage.Object, error) {
	if !s.has(name, storage.KindFile) {
		return nil, Missing(name)
	}
	return s.Files.Open(name)
}

// Missing returns the error for a name that is not there.
func Missing(name string) error { return fmt.Errorf("%w: %q", fs.ErrNotExist, name) }
