package codex

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

const (
	sessionsDir = "sessions"
	archivedDir = "archived_sessions"
)

// levels match the names of directories for years, months and days.
var levels = [...]string{"[0-9][0-9][0-9][0-9]", "[0-9][0-9]", "[0-9][0-9]"}

// Days shows the directories of rollouts side by side: sessions/YYYY/MM/DD as YYYY-MM-DD,
// archived_sessions, and sessions for rollouts directly in it.
type Days struct{ agents.Renamed }

// newDays returns the Days of files of ~/.codex.
func newDays(home storage.Files) *Days {
	return &Days{agents.Renamed{Raw: home, Real: inHome}}
}

// inHome returns the name in ~/.codex of a directory of rollouts or of a file in it.
func inHome(name string) (at string, kind storage.Kind, err error) {
	dir, rest, isFile := strings.Cut(name, "/")
	isDir := dir == archivedDir || dir == sessionsDir
	if !isDir {
		isDay, _ := path.Match(strings.Join(levels[:], "-"), dir)
		if !isDay {
			return "", 0, fmt.Errorf("%w: %q", fs.ErrNotExist, name)
		}
		dir = path.Join(sessionsDir, strings.ReplaceAll(dir, "-", "/"))
	}
	if isFile {
		return dir + "/" + rest, storage.KindFile, nil
	}
	return dir, storage.KindDir, nil
}

// List implements storage.Files.
func (d *Days) List(dir string, only []string, f func(storage.Item) bool) error {
	if dir != "" {
		at, _, err := inHome(dir)
		if err != nil {
			return err
		}
		return d.Raw.List(at, only, f)
	}
	if only != nil {
		return storage.ListOnly(d, dir, only, f)
	}
	_, names, err := d.scan()
	for _, name := range names {
		state := func() (storage.Stat, error) { return d.Stat(name) }
		if !f(storage.Item{Name: name, Kind: storage.KindDir, State: state}) {
			break
		}
	}
	return err
}

// Stat implements storage.Files. The state of the root changes with the days.
func (d *Days) Stat(name string) (storage.Stat, error) {
	if name == "" {
		all, _, err := d.scan()
		return all, err
	}
	return d.Renamed.Stat(name)
}

// scan returns the directories of rollouts, as far as they can be read, and the combined state of
// those above them.
func (d *Days) scan() (all storage.Stat, names []string, err error) {
	all, err = d.Raw.Stat(sessionsDir)
	if storage.IsMissing(err) {
		all, err = d.Raw.Stat("")
	}
	if err != nil {
		return all, nil, err
	}
	dirs := []string{sessionsDir}
	for level, pattern := range levels {
		above := dirs
		dirs = nil
		for _, dir := range above {
			st, failed := d.Raw.Stat(dir)
			if storage.IsMissing(failed) {
				continue
			}
			all.Token = all.Token.With(st.Token)
			items, unread := storage.List(d.Raw, dir)
			if err == nil {
				err = failed
			}
			if err == nil {
				err = unread
			}
			for _, item := range items {
				matches, _ := path.Match(pattern, item.Name)
				switch {
				case matches && item.Kind == storage.KindDir:
					dirs = append(dirs, path.Join(dir, item.Name))
				case level == 0 && names == nil && isRollout(item.Name) && item.Kind == storage.KindFile:
					names = append(names, sessionsDir)
				}
			}
		}
	}
	for _, dir := range dirs {
		names = append(names, strings.ReplaceAll(strings.TrimPrefix(dir, sessionsDir+"/"), "/", "-"))
	}
	if st, err := d.Raw.Stat(archivedDir); err == nil && st.Kind == storage.KindDir {
		names = append(names, archivedDir)
	}
	return all, names, err
}
