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

// Locate returns the session at a client's absolute path. The path may be of another system, also
// Windows, from which the agent directory was copied: then Locate tries its part after a directory
// with the storage's base name. The error wraps ErrNotFound if there is no session.
func (l *Listing) Locate(ctx context.Context, file string) (*sessioncore.Session, error) {
	text := file
	file, _, isAbs := names.AbsPath(text)
	isFile := isAbs && strings.HasSuffix(file, sessioncore.FileEnding)
	if !isFile || len(text) > sessioncore.MaxPath {
		return nil, fmt.Errorf("%w: %.100q is no path of a session", sessioncore.ErrNotFound, text)
	}
	name := l.nameAt(file)
	if name != "" {
		return l.session(ctx, name)
	}
	mark := "/" + path.Base(l.root) + "/"
	_, rest, found := strings.Cut(file, mark)
	for found {
		s, err := l.session(ctx, rest)
		if !errors.Is(err, sessioncore.ErrNotFound) {
			return s, err
		}
		_, rest, found = strings.Cut("/"+rest, mark)
	}
	return nil, fmt.Errorf("%w: %.100q is not here", sessioncore.ErrNotFound, file)
}

// nameAt returns the name of a file at an absolute path, "" if it is not in the storage.
func (l *Listing) nameAt(file string) string {
	if l.nameOf != nil {
		return l.nameOf(file)
	}
	name, isBelow := strings.CutPrefix(file, l.root+"/")
	if !isBelow {
		return ""
	}
	return name
}

// session returns the session in the file name, or an error that wraps ErrNotFound.
func (l *Listing) session(ctx context.Context, name string) (*sessioncore.Session, error) {
	if path.Base(name)[0] == '.' {
		return nil, fmt.Errorf("%w: %.100q is hidden", sessioncore.ErrNotFound, name)
	}
	// Check first, so that the store does not keep invented names.
	_, err := l.store.Storage().Stat(name)
	if unreachable(err) || errors.Is(err, storage.ErrBadName) {
		return nil, fmt.Errorf("%w: %w", sessioncore.ErrNotFound, err)
	}
	s := l.store.Session(name)
	_, err = s.Probe(ctx)
	if unreachable(err) || errors.Is(err, sessioncore.ErrNotSession) {
		err = fmt.Errorf("%w: %w", sessioncore.ErrNotFound, err)
	}
	return s, err
}

// sessionNamed returns the session of a parentSession, a path or id, except for one file. The error
// wraps ErrNotFound if there is none.
func (l *Listing) sessionNamed(ctx context.Context, text, except string) (*sessioncore.Session, error) {
	if !isPath(text) {
		info, err := l.byID(ctx, text, except)
		if err != nil {
			return nil, err
		}
		return l.store.Session(info.Name()), nil
	}
	s, err := l.Locate(ctx, text)
	isFile := strings.HasSuffix(text, sessioncore.FileEnding) && len(text) <= sessioncore.MaxPath
	isMissing := errors.Is(err, sessioncore.ErrNotFound)
	if isMissing && isFile {
		s, err = l.locateMoved(ctx, text)
	}
	if err != nil {
		return s, err
	}
	if s.Name() == except {
		return nil, fmt.Errorf("%w: %s is its own parent", sessioncore.ErrNotFound, s.Name())
	}
	return s, nil
}

// isPath reports whether a parentSession is a path and no id.
func isPath(parent string) bool {
	_, _, isAbs := names.AbsPath(parent)
	return isAbs || strings.IndexByte(parent, '/') >= 0
}

// slashPath returns a client's path, of any system, clean and with slashes.
func slashPath(file string) string {
	clean, _, ok := names.AbsPath(file)
	if ok {
		return clean
	}
	return path.Clean(file)
}

// locateMoved returns the session that was at an absolute path before it, or the session that owns it as an
// artifact, was moved to another directory: clients do not update paths in other sessions. So for
// /a/old/2026_x/sub.jsonl it looks for sub in all directories, then for 2026_x, as sub may be its artifact. The
// error wraps ErrNotFound if there is none.
func (l *Listing) locateMoved(ctx context.Context, file string) (*sessioncore.Session, error) {
	parts := strings.Split(slashPath(file), "/")
	for i, part := range slices.Backward(parts) {
		base := strings.TrimSuffix(part, sessioncore.FileEnding)
		if i == 0 || len(base) < sessioncore.MinClientName {
			continue // other sessions may have the name
		}
		dir, err := l.dirOf(ctx, base)
		if err == nil {
			below := strings.Join(parts[i:], "/")
			return l.session(ctx, path.Join(dir, below))
		}
		if !errors.Is(err, sessioncore.ErrNotFound) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %.100q was not moved here", sessioncore.ErrNotFound, file)
}

// Moved returns the current session of a file that has moved to another directory since it was read
// or written last. The error wraps ErrNotFound if it has not.
func (l *Listing) Moved(ctx context.Context, s *sessioncore.Session) (*sessioncore.Session, error) {
	file := path.Base(s.Name())
	dir, err := l.dirOf(ctx, strings.TrimSuffix(file, sessioncore.FileEnding))
	if err != nil {
		return nil, err
	}
	now, err := l.session(ctx, path.Join(dir, file))
	if err != nil {
		return nil, err
	}
	st, err := now.Probe(ctx)
	if err != nil || !s.IsFile(st.Token) {
		return nil, fmt.Errorf("%w: %s is another file", sessioncore.ErrNotFound, now.Name())
	}
	return now, nil
}

// dirOf returns the directory of the newest session with a file name, without its ending.
func (l *Listing) dirOf(ctx context.Context, base string) (dir string, err error) {
	err = storage.LockUntil(ctx, &l.mu)
	if err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	_, err = l.scan(ctx, onlyNames)
	if err != nil {
		return "", err
	}
	var files []*sessionFile
	for f := range l.allFiles {
		if f.base() == base+sessioncore.FileEnding {
			files = append(files, f)
		}
	}
	err = l.refreshFiles(ctx, files)
	if err != nil {
		return "", err
	}
	found := matching(files, func(*Info) bool { return true })
	if len(found) == 0 {
		return "", fmt.Errorf("%w: no session has the file name %.100q", sessioncore.ErrNotFound, base)
	}
	return path.Dir(found[0].Name()), nil
}
