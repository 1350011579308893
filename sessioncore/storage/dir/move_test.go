//go:build linux

package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// tree returns the files below the directories of a storage, as openTemp takes it.
func (s *Storage) tree(t *testing.T) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(s.Path(), func(file string, item fs.DirEntry, err error) error {
		name, _ := filepath.Rel(s.Path(), file)
		switch {
		case err != nil || strings.Count(name, "/") == 0:
			return err
		case item.IsDir():
			name += "/"
		case item.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(file)
			name += " -> " + target
		}
		files = append(files, name)
		return nil
	}))
	return files
}

// TestMove: a file moves with the directory beside it, or nothing changes and the error tells the reason.
func TestMove(t *testing.T) {
	beside := []string{"a/x.jsonl", "a/x/", "a/x/1.log"}
	for name, test := range map[string]struct {
		before []string
		to     string
		want   error
		after  []string // nil: as before
	}{
		"alone":                         {[]string{"a/x.jsonl"}, "b/x.jsonl", nil, []string{"b/x.jsonl"}},
		"with a directory":              {beside, "b/x.jsonl", nil, []string{"b/x/", "b/x/1.log", "b/x.jsonl"}},
		"into the root":                 {beside, "x.jsonl", nil, []string{"x/1.log"}},
		"a file is there":               {append(beside, "b/x.jsonl"), "b/x.jsonl", fs.ErrExist, nil},
		"a directory is there":          {append(beside, "b/x/"), "b/x.jsonl", fs.ErrExist, nil},
		"another link is there":         {append(beside, "b/x -> nowhere"), "b/x.jsonl", fs.ErrExist, nil},
		"beside is a file":              {[]string{"a/x.jsonl", "a/x"}, "b/x.jsonl", unix.ENOTDIR, nil},
		"beside is a link to elsewhere": {[]string{"a/x.jsonl", "c/y/", "a/x -> ../c/y"}, "b/x.jsonl", unix.ENOTDIR, nil},
		"beside is a link to another's": {[]string{"a/x.jsonl", "c/x/", "c/x.jsonl", "a/x -> ../c/x"}, "b/x.jsonl", unix.ENOTDIR, nil},
		"no file":                       {[]string{"a/x/"}, "b/x.jsonl", fs.ErrNotExist, nil},
		"no file but a directory":       {[]string{"a/x.jsonl/"}, "b/x.jsonl", storage.ErrNotRegular, nil},
		"no directory to go to":         {beside, "d/x.jsonl", fs.ErrNotExist, nil},
		"killed before the file":        {[]string{"a/x.jsonl", "b/x/1.log"}, "b/x.jsonl", nil, []string{"b/x/", "b/x/1.log", "b/x.jsonl"}},
		"killed, and now taken":         {[]string{"a/x.jsonl", "b/x/1.log", "b/x.jsonl"}, "b/x.jsonl", fs.ErrExist, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t, append(test.before, "a/", "b/", "c/")...)
			before := s.tree(t)
			err := s.Move("a/x.jsonl", test.to, ".jsonl")
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
				require.Equal(t, before, s.tree(t))
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.after, s.tree(t))
			require.Equal(t, "one\n", storagetest.Read(t, s, test.to))
		})
	}
}

// TestMoveIsWholeAtEachStep: before and after each rename the file has one of its names, and so has its directory, which
// goes first. If one fails, all is as it was. Where a move was killed, the next one completes it. Each name is durable before
// the next one changes.
func TestMoveIsWholeAtEachStep(t *testing.T) {
	for _, before := range [][]string{{"a/x.jsonl", "a/x/1.log", "b/"}, {"a/x.jsonl", "b/x/1.log"}} {
		for fails := range 3 { // which rename; 0 is none
			for _, why := range []error{unix.EIO, unix.EXDEV, unix.EINVAL} {
				s := openTemp(t, before...)
				was := s.tree(t)
				renames := 0
				var calls []string
				requireWhole := func() {
					tree := strings.Join(s.tree(t), " ")
					require.Equal(t, 1, strings.Count(tree, "/x.jsonl"), tree)
					require.Equal(t, 1, strings.Count(tree, "/x/1.log"), tree)
					require.False(t, strings.Contains(tree, "b/x.jsonl") && strings.Contains(tree, "a/x/1.log"), tree)
				}
				s.sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
					requireWhole()
					calls = append(calls, "rename "+to)
					renames++
					if renames == fails {
						return why
					}
					err := renameat2(fromDir, from, toDir, to, flags)
					requireWhole()
					return err
				}
				s.sys.fsync = func(fd int) error {
					requireWhole()
					dir, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
					calls = append(calls, "fsync "+filepath.Base(dir))
					return errors.Join(err, unix.Fsync(fd))
				}
				err := s.Move("a/x.jsonl", "b/x.jsonl", ".jsonl")
				if fails == 0 {
					moves := []string{"rename x", "fsync b", "fsync a", "rename x.jsonl", "fsync b", "fsync a"}
					const callsOfMove = 3
					require.Equal(t, moves[len(moves)-callsOfMove*renames:], calls)
				}
				hasFailed := fails != 0 && fails <= renames
				lacksFlag := why == unix.EINVAL // RENAME_NOREPLACE, without which it works too
				if !hasFailed || lacksFlag {
					require.NoError(t, err)
					require.Equal(t, []string{"b/x/", "b/x/1.log", "b/x.jsonl"}, s.tree(t))
				} else {
					require.ErrorIs(t, err, why)
					require.Equal(t, was, s.tree(t))
				}
			}
		}
	}
}

// TestMoveFromReplacedDirectory: what has moved while its directory was replaced is back where it was.
func TestMoveFromReplacedDirectory(t *testing.T) {
	for _, dir := range []string{"a", "b"} {
		s := openTemp(t, "a/x.jsonl", "a/x/1.log", "b/")
		replaceOnce := sync.OnceFunc(func() {
			require.NoError(t, os.Rename(pathOf(s, dir), pathOf(s, "away")))
			require.NoError(t, os.Mkdir(pathOf(s, dir), 0o700))
		})
		s.sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
			if from == "x.jsonl" && fromDir != toDir {
				replaceOnce()
			}
			return renameat2(fromDir, from, toDir, to, flags)
		}
		require.ErrorIs(t, s.Move("a/x.jsonl", "b/x.jsonl", ".jsonl"), storage.ErrStale)
		origin := "a"
		if dir == "a" {
			origin = "away"
		}
		require.Equal(t, []string{origin + "/x/", origin + "/x/1.log", origin + "/x.jsonl"}, s.tree(t))
	}
}
