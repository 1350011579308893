package listing

import (
	"context"
	"fmt"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// CwdList returns the entries of the directory of by-cwd/ that stands for the working directory dir, unsorted.
func (l *Listing) CwdList(ctx context.Context, dir string) ([]CwdEntry, error) {
	if err := storage.LockUntil(ctx, &l.mu); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if err := l.refresh(ctx, false); err != nil {
		return nil, err
	}
	return l.directories().list(dir), nil
}

// CwdStat returns the Stat of the directory of by-cwd/ that stands for dir. Its times say when a session was last
// added or removed, in any directory. The error wraps ErrNotFound if no session is in dir or below.
func (l *Listing) CwdStat(ctx context.Context, dir string) (storage.Stat, error) {
	if dir == "/" {
		return l.Stat(ctx)
	}
	if err := storage.LockUntil(ctx, &l.mu); err != nil {
		return storage.Stat{}, err
	}
	defer l.mu.Unlock()
	err := l.refresh(ctx, false)
	if err == nil && !l.directories().has(keyOfCwd(dir)) {
		err = fmt.Errorf("%w: a session in %q", sessioncore.ErrNotFound, dir)
	}
	return l.newest, err
}

// CwdFind returns the entry name of the directory of by-cwd/ that stands for dir. The error wraps ErrNotFound if
// there is none. If known is set, it finds what was there when somebody looked last; but the link latest leads
// to the latest session.
func (l *Listing) CwdFind(ctx context.Context, dir, name string, known bool) (CwdEntry, error) {
	if err := storage.LockUntil(ctx, &l.mu); err != nil {
		return CwdEntry{}, err
	}
	defer l.mu.Unlock()
	known = known && name != latestName
	for _, all := range [...]bool{false, true} {
		if !known {
			if err := l.refresh(ctx, all); err != nil {
				return CwdEntry{}, err
			}
		}
		if e, ok := l.directories().find(dir, name); ok {
			var err error
			if e.Stat = l.newest; e.Dir == "" {
				e.Session, err = l.findLocked(ctx, known, l.cwdLink(dir, name))
			}
			return e, err
		}
	}
	return CwdEntry{}, fmt.Errorf("%w: %q in %q", sessioncore.ErrNotFound, name, dir)
}

// Scope returns the directory with the latest session of a working directory, by the names of files, which begin with
// the time. It is "" if no directory has one. Sessions that lie in no directory do not count, nor does the file except.
func (l *Listing) Scope(ctx context.Context, cwd, except string) (dir string, err error) {
	dir, ok := cleanCwd(cwd)
	if !ok {
		return "", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(ctx, false); err != nil && !unreachable(err) {
		return "", err
	}
	for _, k := range slices.Backward(l.directories().own(keyOfCwd(dir))) {
		if scope := storage.Dir(k.file.name); scope != "" && k.file.name != except {
			return scope, nil
		}
	}
	return "", nil
}

// cwdLink returns a finder for the session of a link.
func (l *Listing) cwdLink(dir, name string) finder {
	return func() ([]*sessionFile, bool, func(*Info) bool) {
		x := l.directories()
		e, ok := x.find(dir, name)
		latest := ok && e.Dir == "" && e.file == nil
		var files []*sessionFile
		switch {
		case latest:
			for _, k := range x.own(keyOfCwd(dir)) {
				files = append(files, k.file)
			}
		case ok && e.file != nil:
			files = append(files, e.file)
		}
		return files, true, func(i *Info) bool {
			cwd, _ := cleanCwd(i.CWD)
			return cwd == dir && (latest || e.file != nil && e.file.name == i.Name)
		}
	}
}
