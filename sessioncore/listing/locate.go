package listing

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Locate returns the session at an absolute path that a client wrote. The path may be from another place, also one of Windows,
// from which the agent directory was copied: then Locate tries here the rest of the path behind a
// directory with the same base name as the storage. The error wraps ErrNotFound if there is no session.
func (l *Listing) Locate(ctx context.Context, file string) (*sessioncore.Session, error) {
	text := file
	file, _, isAbs := names.AbsPath(text)
	if len(text) > sessioncore.MaxPath || !isAbs || !strings.HasSuffix(file, sessioncore.FileEnding) {
		return nil, fmt.Errorf("%w: %.100q is no path of a session", sessioncore.ErrNotFound, text)
	}
	if l.nameOf != nil {
		if name := l.nameOf(file); name != "" {
			return l.session(ctx, name)
		}
	} else if name, ok := strings.CutPrefix(file, l.root+"/"); ok {
		return l.session(ctx, name)
	}
	mark := "/" + path.Base(l.root) + "/"
	for _, rest, found := strings.Cut(file, mark); found; _, rest, found = strings.Cut("/"+rest, mark) {
		if s, err := l.session(ctx, rest); !errors.Is(err, sessioncore.ErrNotFound) {
			return s, err
		}
	}
	return nil, fmt.Errorf("%w: %.100q is not here", sessioncore.ErrNotFound, file)
}

// session returns the session in the file name. The error wraps ErrNotFound if there is none.
func (l *Listing) session(ctx context.Context, name string) (*sessioncore.Session, error) {
	if path.Base(name)[0] == '.' {
		return nil, fmt.Errorf("%w: %.100q is hidden", sessioncore.ErrNotFound, name)
	}
	// Check first, so that the store does not keep names that a text made up.
	if _, err := l.store.Storage().Stat(name); unreachable(err) || errors.Is(err, storage.ErrBadName) {
		return nil, fmt.Errorf("%w: %w", sessioncore.ErrNotFound, err)
	}
	s := l.store.Session(name)
	_, err := s.Probe(ctx)
	if unreachable(err) || errors.Is(err, sessioncore.ErrNotSession) {
		err = fmt.Errorf("%w: %w", sessioncore.ErrNotFound, err)
	}
	return s, err
}

// sessionNamed returns the session that a parentSession names, by path or by id, ignoring the file except. The error wraps
// ErrNotFound if there is none.
func (l *Listing) sessionNamed(ctx context.Context, text, except string) (*sessioncore.Session, error) {
	if !isPath(text) {
		info, err := l.byID(ctx, text, except, false)
		if err != nil {
			return nil, err
		}
		return l.store.Session(info.Name()), nil
	}
	s, err := l.Locate(ctx, text)
	if errors.Is(err, sessioncore.ErrNotFound) && strings.HasSuffix(text, sessioncore.FileEnding) && len(text) <= sessioncore.MaxPath {
		s, err = l.locateMoved(ctx, text)
	}
	if err == nil && s.Name() == except {
		return nil, fmt.Errorf("%w: %s is its own parent", sessioncore.ErrNotFound, s.Name())
	}
	return s, err
}

// isPath reports whether a parentSession is a path, and not an id.
func isPath(parent string) bool {
	_, _, isAbs := names.AbsPath(parent)
	return isAbs || strings.IndexByte(parent, '/') >= 0
}

// slashPath returns a path that a client wrote on any system with slashes, clean.
func slashPath(file string) string {
	if clean, _, ok := names.AbsPath(file); ok {
		return clean
	}
	return path.Clean(file)
}

// clientName is the minimum length of a session file's name that a client made, without its ending: a time of 24
// characters, an underscore, and an id of at least 16. No two sessions share one.
const clientName = 24 + 1 + 16

// locateMoved returns the session that was at an absolute path before it, or the session that it belongs to, was moved
// to another directory: clients change no path in other sessions then. The error wraps ErrNotFound if there is none.
func (l *Listing) locateMoved(ctx context.Context, file string) (*sessioncore.Session, error) {
	file = slashPath(file)
	for at := strings.LastIndexByte(file, '/'); at >= 0; at = strings.LastIndexByte(file[:at], '/') {
		rest := file[at+1:]
		top, _, _ := strings.Cut(rest, "/")
		if top = strings.TrimSuffix(top, sessioncore.FileEnding); len(top) < clientName {
			continue
		}
		dir, err := l.dirOf(ctx, top)
		if err == nil {
			return l.session(ctx, path.Join(dir, rest))
		}
		if !errors.Is(err, sessioncore.ErrNotFound) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %.100q was not moved here", sessioncore.ErrNotFound, file)
}

// Moved returns the session that a session is now, if its file has gone to another directory since it was last read or
// written. The error wraps ErrNotFound if it has not.
func (l *Listing) Moved(ctx context.Context, s *sessioncore.Session) (*sessioncore.Session, error) {
	base := strings.TrimSuffix(path.Base(s.Name()), sessioncore.FileEnding)
	dir, err := l.dirOf(ctx, base)
	if err != nil {
		return nil, err
	}
	now, err := l.session(ctx, path.Join(dir, path.Base(s.Name())))
	if err != nil {
		return nil, err
	}
	if st, err := now.Probe(ctx); err != nil || !s.IsFile(st.Token) {
		return nil, fmt.Errorf("%w: %s is another file", sessioncore.ErrNotFound, now.Name())
	}
	return now, nil
}

// dirOf returns the directory of the session whose file has a name, without its ending; of several the newest.
func (l *Listing) dirOf(ctx context.Context, base string) (dir string, err error) {
	if err := l.lock(ctx, false); err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	var files []*sessionFile
	for _, k := range l.resumeKeys().startingWith(strings.ToLower(base)) {
		files = append(files, k.file)
	}
	found := newestOf(files, func(i *Info) bool { return i.BaseName() == base })
	if found == nil {
		return "", fmt.Errorf("%w: no session has the file name %.100q", sessioncore.ErrNotFound, base)
	}
	return path.Dir(found.Name()), nil
}
