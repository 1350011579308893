package codex

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sessionfs/sessioncore/storage"
)

const (
	sessionsDir = "sessions"
	archivedDir = "archived_sessions"
	// year and month are how many digits the names of directories have; those of days have as many as months.
	year, month = 4, 2
)

// Days shows the directories of rollouts side by side, as sessions lie: YYYY-MM-DD for sessions/YYYY/MM/DD, and
// archived_sessions.
type Days struct{ Home storage.Files } // of ~/.codex

var _ storage.Files = Days{}

// real returns the name in Home, and whether it is one of rollouts.
func real(name string) (string, bool) {
	dir, rest, below := strings.Cut(name, "/")
	if dir != archivedDir {
		parts := strings.Split(dir, "-")
		if len(parts) != 3 || !isNumber(parts[0], year) || !isNumber(parts[1], month) || !isNumber(parts[2], month) {
			return "", false
		}
		dir = path.Join(sessionsDir, parts[0], parts[1], parts[2])
	}
	if below {
		dir += "/" + rest
	}
	return dir, true
}

// isNumber reports whether a name is n digits.
func isNumber(name string, n int) bool {
	return len(name) == n && strings.Trim(name, "0123456789") == ""
}

func missing(name string) error { return fmt.Errorf("%w: %q", fs.ErrNotExist, name) }

// List implements storage.Files.
func (d Days) List(dir string, only []string, f func(storage.Item) bool) error {
	if dir != "" {
		at, ok := real(dir)
		if !ok {
			return missing(dir)
		}
		return d.Home.List(at, only, f)
	}
	if only != nil {
		return storage.ListOnly(d, dir, only, f)
	}
	_, err := d.eachDay(f)
	return err
}

// eachDay calls f, which may be nil, for each directory of rollouts, and returns the state of all that are above them.
func (d Days) eachDay(f func(storage.Item) bool) (all storage.Stat, err error) {
	all, err = d.Home.Stat(sessionsDir)
	if storage.IsMissing(err) {
		all, err = d.Home.Stat("")
	}
	if err != nil {
		return all, err
	}
	more := true
	show := func(name string, kind storage.Kind) {
		if more && f != nil && kind == storage.KindDir {
			more = f(storage.Item{Name: name, Kind: kind, State: func() (storage.Stat, error) { return d.Stat(name) }})
		}
	}
	years, err := d.numbers(sessionsDir, year, &all)
	for _, y := range years {
		months, failed := d.numbers(path.Join(sessionsDir, y), month, &all)
		err = cmp.Or(err, failed)
		for _, m := range months {
			days, failed := d.numbers(path.Join(sessionsDir, y, m), month, &all)
			err = cmp.Or(err, failed)
			for _, day := range days {
				show(y+"-"+m+"-"+day, storage.KindDir)
			}
		}
	}
	if st, err := d.Home.Stat(archivedDir); err == nil {
		show(archivedDir, st.Kind)
	}
	return all, err
}

// numbers returns the directories in dir whose names are n digits, and adds the state of dir to all.
func (d Days) numbers(dir string, n int, all *storage.Stat) (names []string, err error) {
	st, err := d.Home.Stat(dir)
	if err != nil {
		if storage.IsMissing(err) {
			err = nil
		}
		return nil, err
	}
	all.Inode = all.Inode*31 + st.Inode
	all.Modified, all.Changed = max(all.Modified, st.Modified), max(all.Changed, st.Changed)
	err = d.Home.List(dir, nil, func(item storage.Item) bool {
		if item.Kind == storage.KindDir && isNumber(item.Name, n) {
			names = append(names, item.Name)
		}
		return true
	})
	return names, err
}

// Stat implements storage.Files. The state of the root changes with the days.
func (d Days) Stat(name string) (storage.Stat, error) {
	if name == "" {
		return d.eachDay(nil)
	}
	at, ok := real(name)
	if !ok {
		return storage.Stat{}, missing(name)
	}
	return d.Home.Stat(at)
}

// Open implements storage.Files.
func (d Days) Open(name string) (storage.Object, error) {
	at, ok := real(name)
	if !ok {
		return nil, missing(name)
	}
	return d.Home.Open(at)
}

// ReadAhead implements storage.Files.
func (d Days) ReadAhead(names []string) {
	all := make([]string, 0, len(names))
	for _, name := range names {
		if at, ok := real(name); ok {
			all = append(all, at)
		}
	}
	d.Home.ReadAhead(all)
}
