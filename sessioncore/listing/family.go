package listing

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Family is the listings in which parents and children are looked for, in this order: that of the sessions and that of
// the archived ones.
type Family []*Listing

// Member is a session of a Family, and the listing that it is in.
type Member struct {
	Listing *Listing
	Session *sessioncore.Session
}

// Path returns the path in the mount of the directory that shows the session, from the mount's root.
func (m Member) Path() string { return m.Listing.Path(m.Session) }

// Parent returns the session that m was forked from: the one that parentSession in its header names, by path or by id.
// The error wraps ErrNotFound if the header names none, or none that exists here.
func (f Family) Parent(ctx context.Context, m Member) (Member, error) {
	text, err := m.Session.ParentText(ctx)
	switch {
	case err != nil:
		return Member{}, err
	case text == "":
		return Member{}, fmt.Errorf("%w: no parent", sessioncore.ErrNotFound)
	}
	for _, l := range f {
		except := ""
		if l == m.Listing {
			except = m.Session.Name()
		}
		s, err := l.sessionNamed(ctx, text, except)
		if err == nil || !errors.Is(err, sessioncore.ErrNotFound) {
			return Member{l, s}, err
		}
	}
	return Member{}, fmt.Errorf("%w: %.100q is not here", sessioncore.ErrNotFound, text)
}

// Child is a session whose parent another one is.
type Child struct {
	Member
	// Name is that of its file, without the suffix. If several children have it, a hash of the path follows.
	Name string
}

// Children returns the sessions of which m is the parent, in the order of names. It looks at the directories of all
// sessions, and at the files of those that may be children.
func (f Family) Children(ctx context.Context, m Member) ([]Child, error) {
	return f.children(ctx, m, func(string) bool { return true })
}

// Child returns the child that Children gives a name, or an error that wraps ErrNotFound.
func (f Family) Child(ctx context.Context, m Member, name string) (Child, error) {
	plain, _ := beforeHash(name)
	found, err := f.children(ctx, m, func(base string) bool { return base == name || cutBase(base) == plain })
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
func (f Family) children(ctx context.Context, m Member, want func(base string) bool) (found []Child, err error) {
	id, err := m.Session.ID(ctx)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, l := range f {
		files, err := l.mayBeChildren(ctx, id, m.Session.Name())
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
			child := Member{l, l.store.Session(file)}
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
			found[i].Name = withHash(c.Name, c.Path())
		}
	}
	slices.SortFunc(found, func(a, b Child) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

const (
	// maxArtifactLevels is how deep directories of artifacts are followed, and maxArtifactSessions how many sessions are looked at
	// in them for those that are children of another.
	maxArtifactLevels   = 32
	maxArtifactSessions = 10_000
)

// artifactSessions returns the session files among the artifacts of a session, or of the session that
// has it among its own: subagents that begin with their caller's conversation are forks of the caller.
func (l *Listing) artifactSessions(name string) (found []string) {
	files := l.store.Storage()
	top := strings.TrimSuffix(name, sessioncore.FileEnding)
	for dir := path.Dir(top); dir != "."; dir = path.Dir(dir) {
		if st, err := files.Stat(dir + sessioncore.FileEnding); err == nil && st.Kind == storage.KindFile {
			top = dir
		}
	}
	dirs := []string{top}
	for level := 0; level < maxArtifactLevels && len(dirs) > 0; level++ {
		var below []string
		for _, dir := range dirs {
			// A directory that cannot be listed has no readable children.
			_ = files.List(dir, nil, func(item storage.Item) bool {
				switch at := path.Join(dir, item.Name); {
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

// mayBeChildren returns the files of the known sessions whose parentSession may name the one with an id and a file name.
func (l *Listing) mayBeChildren(ctx context.Context, id, name string) (found []string, err error) {
	if err := l.lock(ctx, false); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	keys := []string{path.Base(name)}
	if id != "" && id != keys[0] {
		keys = append(keys, id)
	}
	var files []*sessionFile
	for _, key := range keys {
		files = append(files, l.childrenOf(key)...)
	}
	if err := l.refreshFiles(ctx, files); err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.info != nil {
			found = append(found, f.name())
		}
	}
	return found, nil
}

// parentKey returns what children are found by: the id that a parentSession is, or the name of the file if it is a path.
func parentKey(parent string) string {
	if !isPath(parent) {
		return parent
	}
	return path.Base(slashPath(parent))
}
