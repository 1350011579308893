package search

import (
	"context"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// IsWithin reports whether the working directory of a session is one of dirs or below one, all absolute. An
// unknown directory is in none.
func IsWithin(cwd string, dirs []string) bool {
	folded := foldedPath(cwd)
	isIn := func(dir string) bool {
		return isBelow(folded, foldedPath(dir))
	}
	return folded != "" && slices.ContainsFunc(dirs, isIn)
}

// isWithin reports whether the session with a header counts, by s.Within; without any, the header is not read.
func (s *Searcher) isWithin(header func() (rawjson.Value, error)) (bool, error) {
	if len(s.Within) == 0 {
		return true, nil
	}
	h, err := header()
	if err != nil {
		return false, err
	}
	cwd, _ := h.Member("cwd").Text()
	return IsWithin(cwd, s.Within), nil
}

// WithID returns the sessions with ids that begin with key in any case, also the subagents', the latest
// modified first. It reads the header of each session; a session without a readable one is left out.
func (s *Searcher) WithID(ctx context.Context, key string) ([]*FileHits, error) {
	files, err := sessionFiles(ctx, s.Files)
	if err != nil {
		return nil, err
	}
	key = strings.ToLower(key)
	all := make([]*FileHits, len(files))
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range files {
		readers.Go(func() (err error) {
			defer storage.RecoverTo(&err)
			all[i] = s.foundWithID(ctx, f.name, key)
			return ctx.Err()
		})
	}
	err = readers.Wait()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(f *FileHits) bool { return f == nil }), nil
}

// foundWithID returns a session if it counts and its id begins with key, which is in lower case, else
// nil.
func (s *Searcher) foundWithID(ctx context.Context, name, key string) *FileHits {
	header, err := sessioncore.ReadHeaderOf(ctx, s.Files, name)
	if err != nil {
		return nil
	}
	id, _ := header.Member("id").Text()
	asName := names.FileName(id)
	hasKey := strings.HasPrefix(strings.ToLower(id), key) || strings.HasPrefix(strings.ToLower(asName), key)
	if !hasKey {
		return nil
	}
	known := func() (rawjson.Value, error) {
		return header, nil
	}
	isWithin, err := s.isWithin(known)
	if err != nil || !isWithin {
		return nil
	}
	return &FileHits{Tree: s.Tree, File: name, ID: id}
}
