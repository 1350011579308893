package listing

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Listings are the listings searched for parents and children, those of the sessions first.
type Listings []*Listing

// ListedSession is a session and its listing.
type ListedSession struct {
	Listing *Listing
	Session *sessioncore.Session
}

// Path returns the path of the session's directory from the mount's root.
func (m ListedSession) Path() string { return m.Listing.Path(m.Session) }

// Parent returns the parent of m, which parentSession in its header names by path or by id. The
// error wraps ErrNotFound if it names none, or none that exists here.
func (f Listings) Parent(ctx context.Context, m ListedSession) (ListedSession, error) {
	text, err := m.Session.ParentText(ctx)
	switch {
	case err != nil:
		return ListedSession{}, err
	case text == "":
		return ListedSession{}, fmt.Errorf("%w: no parent", sessioncore.ErrNotFound)
	}
	for _, l := range f {
		except := ""
		if l == m.Listing {
			except = m.Session.Name()
		}
		s, err := l.sessionNamed(ctx, text, except)
		if err == nil || !errors.Is(err, sessioncore.ErrNotFound) {
			return ListedSession{l, s}, err
		}
	}
	return ListedSession{}, fmt.Errorf("%w: %.100q is not here", sessioncore.ErrNotFound, text)
}

// Child is a session with another one as its parent.
type Child struct {
	ListedSession
	// Name is the file's name without the suffix. A hash of the path makes it unique.
	Name string
}

// Children returns the sessions whose parent is m, sorted by name. It reads the directories of all
// sessions, and the files of possible children.
func (f Listings) Children(ctx context.Context, m ListedSession) ([]Child, error) {
	return f.children(ctx, m, func(string) bool { return true })
}

// Child returns the child that Children gives a name, or an error that wraps ErrNotFound.
func (f Listings) Child(ctx context.Context, m ListedSession, name string) (Child, error) {
	plain := name[:max(0, len(name)-names.HashLength-1)] // if names.WithHash made it
	found, err := f.children(ctx, m, func(base string) bool { return base == name || base[:min(len(base), names.MaxName)] == plain })
	if err != nil {
		return Child{}, err
	}
	for _, c := range found {
		if c.Name == name {
			return c, nil
		}
	}
	return Child{}, fmt.Errorf("%w: no child is called %q", sessioncore.ErrNotFound, name)
}

// children is Children for the files whose name want selects.
func (f Listings) children(
	ctx context.Context, m ListedSession, want func(base string) bool,
) (found []Child, err error) {
	id, err := m.Session.ID(ctx)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, l := range f {
		files, err := l.childCandidates(ctx, id, m.Session.Name())
		if err != nil {
			return nil, err
		}
		if l == m.Listing {
			files = append(files, l.artifactSessions(m.Session.Name())...)
		}
		for _, file := range files {
			base := strings.TrimSuffix(path.Base(file), sessioncore.FileEnding)
			if !want(base) {
				continue
			}
			child := ListedSession{l, l.store.Session(file)}
			parent, err := f.Parent(ctx, child)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err == nil && parent == m {
				found = append(found, Child{child, base})
				count[base]++
			}
		}
	}
	for i, c := range found {
		if count[c.Name] > 1 {
			found[i].Name = names.WithHash(c.Name, c.Path())
		}
	}
	slices.SortFunc(found, func(a, b Child) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

const (
	// maxArtifactLevels bounds the depth of directories of artifacts, and maxArtifactSessions the
	// sessions read in them as possible children.
	maxArtifactLevels   = 32
	maxArtifactSessions = 10_000
)

// artifactSessions returns the session files among the artifacts of a session, or of the session
// whose artifact it is: subagents that begin with their caller's conversation are its forks.
func (l *Listing) artifactSessions(name string) (found []string) {
	files := l.store.Storage()
	dirs := []string{strings.TrimSuffix(sessioncore.OutermostOf(files, name), sessioncore.FileEnding)}
	for level := 0; level < maxArtifactLevels && len(dirs) > 0; level++ {
		var below []string
		for _, dir := range dirs {
			// A directory that cannot be listed has no readable children.
			_ = files.List(dir, nil, func(item storage.Item) bool {
				at := path.Join(dir, item.Name)
				switch {
				case item.Name[0] == '.':
				case item.Kind == storage.KindDir:
					below = append(below, at)
				case item.Kind == storage.KindFile && at != name && strings.HasSuffix(at, sessioncore.FileEnding):
					found = append(found, at)
				}
				return len(found) < maxArtifactSessions && len(below) < maxArtifactSessions
			})
		}
		dirs = below
	}
	return found
}

// childCandidates returns the files of the known sessions whose parentSession may mean an id or a
// file name.
func (l *Listing) childCandidates(ctx context.Context, id, name string) (found []string, err error) {
	err = l.lock(ctx, false)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	keys := []string{path.Base(name)}
	if id != "" && id != keys[0] {
		keys = append(keys, id)
	}
	var files []*sessionFile
	for _, key := range keys {
		files = append(files, l.view(byParent).own(key).files()...)
	}
	err = l.refreshFiles(ctx, files)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.info != nil {
			found = append(found, f.name)
		}
	}
	return found, nil
}

// parentKey returns the key of a parentSession for its children: an id, or the file name in a path.
func parentKey(parent string) string {
	if !isPath(parent) {
		return parent
	}
	return path.Base(slashPath(parent))
}
