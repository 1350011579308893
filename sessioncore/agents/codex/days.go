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

// inHome returns the name in ~/.codex of a directory of rollouts or of a file in it. Other names are missing.
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

// scan returns the directories of rollouts as Days names them, as far as they can be read, and the combined state of
// those above them. With an error, names has the directories that could be read.
func (d *Days) scan() (all storage.Stat, names []string, err error) {
	all, err = d.Raw.Stat(sessionsDir)
	if storage.IsMissing(err) {
		all, err = d.Raw.Stat("") // which changes when that directory is made
	}
	if err != nil {
		return all, nil, err
	}
	s := dayScan{raw: d.Raw, all: all}
	days := []string{sessionsDir}
	for _, pattern := range levels {
		days = s.below(days, pattern)
	}
	if s.hasRollouts {
		names = append(names, sessionsDir)
	}
	for _, day := range days {
		date := strings.TrimPrefix(day, sessionsDir+"/")
		names = append(names, strings.ReplaceAll(date, "/", "-"))
	}
	st, err := d.Raw.Stat(archivedDir)
	if err == nil && st.Kind == storage.KindDir {
		names = append(names, archivedDir)
	}
	return s.all, names, s.err
}

// dayScan looks for the directories of days.
type dayScan struct {
	raw         storage.Files
	all         storage.Stat // the combined state of the directories above days
	hasRollouts bool         // a rollout lies directly in sessions
	err         error        // the first one
}

// below returns the directories in others that have a name of a pattern. It adds the states of the others to s.all.
func (s *dayScan) below(dirs []string, pattern string) (found []string) {
	for _, dir := range dirs {
		st, err := s.raw.Stat(dir)
		if storage.IsMissing(err) {
			continue
		}
		s.all.Token = s.all.Token.With(st.Token)
		s.note(err)
		items, err := storage.List(s.raw, dir)
		s.note(err)
		for _, item := range items {
			matches, _ := path.Match(pattern, item.Name)
			switch {
			case item.Kind == storage.KindDir && matches:
				found = append(found, path.Join(dir, item.Name))
			case item.Kind == storage.KindFile && dir == sessionsDir && isRollout(item.Name):
				s.hasRollouts = true
			}
		}
	}
	return found
}

// note keeps the first error.
func (s *dayScan) note(err error) {
	if s.err == nil {
		s.err = err
	}
}
