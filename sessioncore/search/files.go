package search

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// file is a session file, or what has the name of one.
type file struct {
	name string
	storage.Stat
}

// maxDepth is how deep directories of sessions are followed. Subagents' sessions lie beside those that called them.
const maxDepth = 32

// sessionFiles returns all session files of a storage, those that were modified last first. Directories that cannot be
// read are passed over, as in every listing of all sessions.
func sessionFiles(ctx context.Context, files storage.Files) (all []file, err error) {
	dirs := []string{""}
	for depth := 0; len(dirs) > 0 && depth < maxDepth; depth++ {
		var below []string
		for _, dir := range dirs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			items, err := storage.ListStat(files, dir, mayHoldSessions)
			if err != nil && dir == "" && !storage.IsMissing(err) {
				return nil, err
			}
			for _, item := range items {
				name := path.Join(dir, item.Name)
				switch item.Kind {
				case storage.KindDir:
					below = append(below, name)
				case storage.KindFile:
					all = append(all, file{name, item.Stat})
				}
			}
		}
		dirs = below
	}
	slices.SortFunc(all, func(a, b file) int {
		return cmp.Or(cmp.Compare(b.Modified, a.Modified), cmp.Compare(path.Base(b.name), path.Base(a.name)), cmp.Compare(b.name, a.name))
	})
	return all, nil
}

func mayHoldSessions(item storage.Item) bool {
	return item.Kind == storage.KindDir ||
		item.Kind == storage.KindFile && item.Name[0] != '.' && strings.HasSuffix(item.Name, sessioncore.FileEnding)
}
