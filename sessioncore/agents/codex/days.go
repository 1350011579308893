package codex

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/storage"
)

const (
	sessionsDir = "sessions"
	archivedDir = "archived_sessions"
	// year and month are the lengths of the names of directories; day is as month.
	year, month = 4, 2
)

// Days shows the directories of rollouts side by side: sessions/YYYY/MM/DD as YYYY-MM-DD,
// archived_sessions, and sessions for rollouts directly in it.
type Days struct{ Home storage.Files } // of ~/.codex

var _ storage.Files = Days{}

// inHome returns the name in Home of a directory of rollouts or a name in it.
func inHome(name string) (string, bool) {
	dir, rest, below := strings.Cut(name, "/")
	if dir != archivedDir && dir != sessionsDir {
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

// isRollout reports whether an item is a rollout.
func isRollout(item storage.Item) bool {
	return item.Kind == storage.KindFile && (*Home)(nil).IsSession(item.Name)
}

// isNumber reports whether a name is n digits.
func isNumber(name string, n int) bool {
	return len(name) == n && strings.Trim(name, "0123456789") == ""
}

func missing(name string) error { return fmt.Errorf("%w: %q", fs.ErrNotExist, name) }

// List implements storage.Files.
func (d Days) List(dir string, only []string, f func(storage.Item) bool) error {
	if dir != "" {
		at, ok := inHome(dir)
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

// eachDay calls f, unless it is nil, for each directory of rollouts, and combines the states above.
func (d Days) eachDay(f func(storage.Item) bool) (all storage.Stat, err error) {
	if all, err = d.Home.Stat(sessionsDir); storage.IsMissing(err) {
		all, err = d.Home.Stat("")
	}
	if err != nil {
		return all, err
	}
	more := true
	show := func(name string) {
		if more && f != nil {
			state := func() (storage.Stat, error) { return d.Stat(name) }
			more = f(storage.Item{Name: name, Kind: storage.KindDir, State: state})
		}
	}
	err = d.walk(sessionsDir, "", []int{year, month, month}, &all, show)
	if st, err := d.Home.Stat(archivedDir); err == nil && st.Kind == storage.KindDir {
		show(archivedDir)
	}
	return all, err
}

// walk calls f for the directories below dir whose names, level by level, have these numbers of
// digits. It adds the states of those above them to all.
func (d Days) walk(dir, name string, digits []int, all *storage.Stat, f func(name string)) error {
	if len(digits) == 0 {
		f(name[1:])
		return nil
	}
	st, err := d.Home.Stat(dir)
	if storage.IsMissing(err) {
		return nil
	}
	all.Inode = all.Inode*31 + st.Inode
	all.Modified, all.Changed = max(all.Modified, st.Modified), max(all.Changed, st.Changed)
	items, failed := storage.List(d.Home, dir)
	if name == "" && slices.ContainsFunc(items, isRollout) {
		f(sessionsDir)
	}
	for _, item := range items {
		if item.Kind == storage.KindDir && isNumber(item.Name, digits[0]) {
			failed = cmp.Or(failed, d.walk(path.Join(dir, item.Name), name+"-"+item.Name, digits[1:], all, f))
		}
	}
	return cmp.Or(err, failed)
}

// Stat implements storage.Files. The state of the root changes with the days.
func (d Days) Stat(name string) (storage.Stat, error) {
	if name == "" {
		return d.eachDay(nil)
	}
	at, ok := inHome(name)
	if !ok {
		return storage.Stat{}, missing(name)
	}
	return d.Home.Stat(at)
}

// Open implements storage.Files.
func (d Days) Open(name string) (storage.Object, error) {
	at, ok := inHome(name)
	if !ok {
		return nil, missing(name)
	}
	return d.Home.Open(at)
}

// ReadAhead implements storage.Files.
func (d Days) ReadAhead(names []string) {
	all := make([]string, 0, len(names))
	for _, name := range names {
		if at, ok := inHome(name); ok {
			all = append(all, at)
		}
	}
	d.Home.ReadAhead(all)
}
