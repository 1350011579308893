package direct

import (
	"context"
	"errors"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Glob returns the paths that a pattern stands for, sorted, as a shell expands it: *, ? and [ ] match in a part of a path
// (path.Match), names that begin with a dot only if the pattern's part does. Parts without those are looked up, listed or
// not. A pattern that is itself the path of something stands for that alone.
func (f *FS) Glob(ctx context.Context, pattern string) ([]string, error) {
	if !hasMeta(pattern) {
		return []string{pattern}, nil
	}
	if _, err := f.Lstat(ctx, pattern); err == nil {
		return []string{pattern}, nil
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, pathError("glob", pattern, err)
	}
	found := []string{""}
	parts := strings.Split(strings.Trim(pattern, "/"), "/")
	for i, part := range parts {
		var next []string
		for _, dir := range found {
			names, err := f.match(ctx, dir, part, i+1 < len(parts) || strings.HasSuffix(pattern, "/"))
			if err != nil {
				return nil, pathError("glob", pattern, err)
			}
			next = append(next, names...)
		}
		found = next
	}
	if len(found) == 0 {
		return nil, pathError("glob", pattern, syscall.ENOENT)
	}
	return found, nil
}

func hasMeta(pattern string) bool { return strings.ContainsAny(pattern, `*?[\`) }

// match returns the paths in a directory that match a part of a pattern, sorted. What is no directory has none.
func (f *FS) match(ctx context.Context, dir, part string, isDir bool) ([]string, error) {
	exists := func(name string) (bool, error) {
		if isDir {
			info, err := f.Stat(ctx, name)
			return err == nil && info.IsDir(), passing(err)
		}
		_, err := f.Lstat(ctx, name)
		return err == nil, passing(err)
	}
	if !hasMeta(part) {
		name := join(dir, part)
		if ok, err := exists(name); !ok {
			return nil, err
		}
		return []string{name}, nil
	}
	names, err := f.ReadDir(ctx, dir)
	if err != nil {
		return nil, passing(err)
	}
	var found []string
	for _, n := range names {
		if ok, err := path.Match(part, n.Name); err != nil || !ok || n.Name[0] == '.' && part[0] != '.' {
			continue
		}
		name := join(dir, n.Name)
		if isDir && !n.Type.IsDir() {
			if n.Type != iofs.ModeSymlink {
				continue
			}
			if ok, err := exists(name); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
		}
		found = append(found, name)
	}
	slices.Sort(found)
	return found, nil
}

// join is path.Join, but does not resolve "..", which may follow a link.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// passing returns an error that is no answer to whether something is there: another than that it is not.
func passing(err error) error {
	for _, absent := range []error{iofs.ErrNotExist, syscall.ENOTDIR, syscall.ELOOP, ErrLeadsOut} {
		if errors.Is(err, absent) {
			return nil
		}
	}
	return err
}
