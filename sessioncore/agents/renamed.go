package agents

import (
	"io/fs"
	"path"

	"sessionfs/sessioncore/storage"
)

// Renamed shows an agent's files under names of sessions.
type Renamed struct {
	Raw storage.Files
	// Names returns the names in a directory, with their kinds. Names without a file are allowed.
	Names func(dir string) ([]storage.Item, error)
	// Real returns the file or directory of a shown name. The directory of a file is virtual. A name
	// of any kind has the kind AsItIs.
	Real func(name string) (file string, kind storage.Kind, err error)
}

// AsItIs is the kind of a name with the kind of its file.
const AsItIs = storage.KindOther

// FileOf implements FileNamer.
func (r *Renamed) FileOf(name string) (file string, err error) {
	file, _, err = r.Real(name)
	return file, err
}

// List implements storage.Files.
func (r *Renamed) List(dir string, only []string, f func(storage.Item) bool) error {
	if only != nil {
		return storage.ListOnly(r, dir, only, f)
	}
	items, err := r.Names(dir)
	if err != nil {
		return err
	}
	for _, item := range items {
		item.State = func() (storage.Stat, error) {
			return r.Stat(path.Join(dir, item.Name))
		}
		if !f(item) {
			break
		}
	}
	return nil
}

// Stat implements storage.Files. A file that is shown as a directory has the file's token.
func (r *Renamed) Stat(name string) (storage.Stat, error) {
	file, kind, err := r.Real(name)
	if err != nil {
		return storage.Stat{}, err
	}
	st, err := r.Raw.Stat(file)
	switch {
	case err != nil:
	case kind == AsItIs || st.Kind == kind:
	case kind == storage.KindDir && st.Kind == storage.KindFile:
		st.Kind = kind
		st.Mode = storage.DirMode
		st.Size = 0
	default:
		return storage.Stat{}, Missing(name)
	}
	return st, err
}

// Open implements storage.Files.
func (r *Renamed) Open(name string) (storage.Object, error) {
	file, kind, err := r.Real(name)
	if err != nil {
		return nil, err
	}
	if kind != storage.KindFile && kind != AsItIs {
		return nil, &fs.PathError{Op: "open", Path: name, Err: storage.ErrNotRegular}
	}
	return r.Raw.Open(file)
}

// ReadAhead implements storage.Files.
func (r *Renamed) ReadAhead(names []string) {
	var files []string
	for _, name := range names {
		file, kind, err := r.Real(name)
		if err == nil && kind != storage.KindDir {
			files = append(files, file)
		}
	}
	r.Raw.ReadAhead(files)
}
