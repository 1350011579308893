package listing

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// clientName is the minimum length of a session file's name that a client made, without its ending: a time of 24
// characters, an underscore, and an id of at least 16. No two sessions share one.
const clientName = 24 + 1 + 16

// locateMoved returns the session that was at an absolute path before it, or the session that it belongs to, was moved
// to another directory: clients change no path in other sessions then. The error wraps ErrNotFound if there is none.
func (l *Listing) locateMoved(ctx context.Context, file string) (*sessioncore.Session, error) {
	dir, rest := path.Dir(path.Clean(file)), path.Base(file)
	for range maxReadings {
		top, _, _ := strings.Cut(rest, "/")
		if top = strings.TrimSuffix(top, sessioncore.FileEnding); len(top) >= clientName {
			now, err := l.dirOf(ctx, top)
			if err == nil {
				return l.session(ctx, path.Join(now, rest))
			}
			if !errors.Is(err, sessioncore.ErrNotFound) {
				return nil, err
			}
		}
		if dir == path.Dir(dir) {
			break
		}
		dir, rest = path.Dir(dir), path.Base(dir)+"/"+rest
	}
	return nil, fmt.Errorf("%w: %.100q was not moved here", sessioncore.ErrNotFound, file)
}

// dirOf returns the directory of the session whose file has a name, without its ending; of several the newest.
func (l *Listing) dirOf(ctx context.Context, base string) (dir string, err error) {
	if err := storage.LockUntil(ctx, &l.mu); err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	if err := l.refresh(ctx, false); err != nil {
		return "", err
	}
	var files []*sessionFile
	for _, k := range l.resumable().startingWith(strings.ToLower(base)) {
		files = append(files, k.file)
	}
	found := l.newestOf(files, func(i *Info) bool { return i.BaseName() == base })
	if found == nil {
		return "", fmt.Errorf("%w: no session has the file name %.100q", sessioncore.ErrNotFound, base)
	}
	return path.Dir(found.Name), nil
}
