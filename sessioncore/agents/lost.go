package agents

import (
	"path"
	"strings"
	"sync"

	"sessionfs/sessioncore/storage"
)

// Inner gives a shown directory a state that changes with other directories of the client, as files in them are
// shown there.
type Inner struct {
	mu   sync.Mutex          // guards dirs
	dirs map[string][]string // the other directories, by the name of the shown one
}

// Set sets the directories that the state of a shown directory changes with.
func (i *Inner) Set(name string, dirs []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.dirs == nil {
		i.dirs = map[string][]string{}
	}
	i.dirs[name] = dirs
}

// With adds the states of the directories that were set to the state of the shown one, and returns it. A directory that
// cannot be looked up adds nothing. files has the directories.
func (i *Inner) With(files storage.Files, name string, st storage.Stat) storage.Stat {
	i.mu.Lock()
	dirs := i.dirs[name]
	i.mu.Unlock()
	for _, dir := range dirs {
		now, err := files.Stat(dir)
		if err == nil {
			st.Token = st.Token.With(now.Token)
		}
	}
	return st
}

const (
	// maxLost bounds the subagents that are found in the directories of sessions without a file.
	maxLost = 10_000
	// maxLostDepth bounds the depth of their directories.
	maxLostDepth = 8
)

// LostSubagents are the subagents of sessions in a directory that have no file any more. They are shown as
// sessions of their own, beside the others.
type LostSubagents struct {
	Deep  bool                   // they may lie below the directory of a session's subagents
	Is    func(name string) bool // tells them by the names of their files; nil for all
	Taken func(name string) bool // tells names of other sessions

	Files map[string]string // their files, by the names of their sessions
	Dirs  []string          // the directories that were searched

	names map[string]string // the names of the files' sessions
}

// Add adds the subagents in the directory of a session's subagents, at most maxLost with those before. owner is the
// session's name. A directory that cannot be listed has none.
func (l *LostSubagents) Add(files storage.Files, dir, owner string) {
	if l.Files == nil {
		l.Files = map[string]string{}
		l.names = map[string]string{}
	}
	l.addBelow(files, dir, owner, 0)
}

// addBelow adds the subagents in a directory, and with Deep in those below it.
func (l *LostSubagents) addBelow(files storage.Files, dir, owner string, depth int) {
	items, err := storage.List(files, dir)
	if err != nil {
		return
	}
	l.Dirs = append(l.Dirs, dir)
	for _, item := range items {
		if len(l.Files) >= maxLost {
			return
		}
		at := path.Join(dir, item.Name)
		switch item.Kind {
		case storage.KindDir:
			if l.Deep && depth < maxLostDepth {
				l.addBelow(files, at, owner, depth+1)
			}
		case storage.KindFile:
			if l.isSession(item.Name) {
				l.addFile(at, item.Name, owner)
			}
		}
	}
}

// isSession reports whether a file of this name is a session.
func (l *LostSubagents) isSession(name string) bool {
	isHidden := name[0] == '.'
	if isHidden || !strings.HasSuffix(name, sessionEnding) {
		return false
	}
	return l.Is == nil || l.Is(name)
}

// addFile adds a subagent by its file at, which has this name. Where the name is taken, the session's has the owner's in
// it.
func (l *LostSubagents) addFile(at, name, owner string) {
	if l.isTaken(name) {
		name = strings.TrimSuffix(name, sessionEnding) + "-" + owner + sessionEnding
	}
	if l.isTaken(name) {
		return // it stays where it is
	}
	l.Files[name] = at
	l.names[at] = name
}

// isTaken reports whether another session has a name.
func (l *LostSubagents) isTaken(name string) bool { return l.Files[name] != "" || l.Taken(name) }

// Has reports whether a file is shown elsewhere.
func (l *LostSubagents) Has(file string) bool { return l.names[file] != "" }

// NameOf returns the name of the session of a file, "" if it is not one of them.
func (l *LostSubagents) NameOf(file string) string { return l.names[file] }
