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

// Listings are the listings searched for parents and children, the sessions' first.
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
	if err != nil {
		return ListedSession{}, err
	}
	if text == "" {
		return ListedSession{}, fmt.Errorf("%w: no parent", sessioncore.ErrNotFound)
	}
	for _, l := range f {
		except := ""
		if l == m.Listing {
			except = m.Session.Name()
		}
		s, err := l.sessionNamed(ctx, text, except)
		if errors.Is(err, sessioncore.ErrNotFound) {
			continue
		}
		return ListedSession{Listing: l, Session: s}, err
	}
	return ListedSession{}, fmt.Errorf("%w: %.100q is not here", sessioncore.ErrNotFound, text)
}

// Child is a session with another one as its parent.
type Child struct {
	ListedSession
	// Name is the file's name without the suffix. A hash of the path makes it unique.
	Name string
}

// Children returns the sessions with the parent m, sorted by name. It reads the directories of all
// sessions, and the files of possible children.
func (f Listings) Children(ctx context.Context, m ListedSession) ([]Child, error) {
	return f.children(ctx, m, func(string) bool { return true })
}

// Child returns the child that Children gives a name, or an error that wraps ErrNotFound.
func (f Listings) Child(ctx context.Context, m ListedSession, name string) (Child, error) {
	const hashSize = len("~") + names.HashLength
	withoutHash := name[:max(0, len(name)-hashSize)] // if names.WithHash made it
	mayBeChild := func(base string) bool {
		short := base[:min(len(base), names.MaxName)]
		return base == name || short == withoutHash
	}
	found, err := f.children(ctx, m, mayBeChild)
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

// children is Children for the sessions that want accepts. base is the name of a session's file without its
// directory and ending. A file that cannot be read is no child.
func (f Listings) children(
	ctx context.Context, m ListedSession, want func(base string) bool,
) (found []Child, err error) {
	id, err := m.Session.ID(ctx)
	if err != nil {
		return nil, err
	}
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
			child := ListedSession{Listing: l, Session: l.store.Session(file)}
			parent, err := f.Parent(ctx, child)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err == nil && parent == m {
				found = append(found, Child{ListedSession: child, Name: base})
			}
		}
	}
	nameChildren(found)
	return found, nil
}

// nameChildren adds a hash to names that several children have, and sorts the children by name.
func nameChildren(children []Child) {
	count := map[string]int{}
	for _, c := range children {
		count[c.Name]++
	}
	for i, c := range children {
		if count[c.Name] > 1 {
			children[i].Name = names.WithHash(c.Name, c.Path())
		}
	}
	slices.SortFunc(children, func(a, b Child) int {
		return strings.Compare(a.Name, b.Name)
	})
}

const (
	// maxArtifactLevels bounds the depth of directories of artifacts, and maxArtifactSessions the
	// sessions read in them as possible children.
	maxArtifactLevels   = 32
	maxArtifactSessions = 10_000
)

// artifactSessions returns the session files among the artifacts of a session, or of the session
// that owns it as an artifact: subagents that begin with their caller's conversation are its forks.
func (l *Listing) artifactSessions(name string) (found []string) {
	files := l.store.Storage()
	outermost := sessioncore.OutermostOf(files, name)
	dirs := []string{strings.TrimSuffix(outermost, sessioncore.FileEnding)}
	for range maxArtifactLevels {
		var below []string
		for _, dir := range dirs {
			// A directory that cannot be listed has no readable children.
			_ = files.List(dir, nil, func(item storage.Item) bool {
				if item.Name[0] == '.' {
					return true
				}
				at := path.Join(dir, item.Name)
				if item.Kind == storage.KindDir {
					below = append(below, at)
				}
				isFile := item.Kind == storage.KindFile
				if isFile && at != name && strings.HasSuffix(at, sessioncore.FileEnding) {
					found = append(found, at)
				}
				return len(found) < maxArtifactSessions && len(below) < maxArtifactSessions
			})
		}
		dirs = below
	}
	return found
}

// childCandidates returns the files of the known sessions with a parentSession that may mean an id or
// a file name.
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

// parentKey returns the key under which byParent has a session with this parentSession: an id, or the name of
// the file at a path.
func parentKey(parent string) string {
	if !isPath(parent) {
		return parent
	}
	return path.Base(slashPath(parent))
}
