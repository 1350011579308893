package storage_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/pending"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
)

// TestListStat: a directory's states are those of List and Stat, and what Each finds is that of List, in every storage.
func TestListStat(t *testing.T) {
	check := func(t *testing.T, s storage.Storage, dir string) {
		all, err := s.List(dir)
		require.NoError(t, err)
		var names []string
		for _, want := range []string{"", "f"} { // all, or a part
			items, err := storage.ListStat(s, dir, func(i storage.Item) bool { return strings.HasPrefix(i.Name, want) })
			require.NoError(t, err)
			slices.SortFunc(items, func(a, b storage.StatItem) int { return strings.Compare(a.Name, b.Name) })
			n := 0
			for _, item := range all {
				if !strings.HasPrefix(item.Name, want) {
					continue
				}
				st, err := s.Stat(path.Join(dir, item.Name))
				require.NoError(t, err)
				require.Equal(t, storage.StatItem{item.Name, st}, items[n])
				n++
			}
			require.Len(t, items, n)
		}
		var each []storage.Item
		require.NoError(t, s.Each(dir, func(i storage.Item) bool { each = append(each, i); return true }))
		require.ElementsMatch(t, all, each)
		for most := range len(all) + 1 {
			n := 0
			require.NoError(t, s.Each(dir, func(storage.Item) bool { n++; return n < most }))
			require.Equal(t, min(max(most, 1), len(all)), n, "it stops when it is told")
		}
		for _, item := range all {
			names = append(names, item.Name)
		}
		var stats []storage.Stat
		err = storage.StatNames(s, dir, append(names, "no such name"), func(i int, st storage.Stat) {
			require.Len(t, stats, i)
			stats = append(stats, st)
		})
		require.NoError(t, err)
		require.Len(t, stats, len(names)+1)
		require.Equal(t, storage.Stat{}, stats[len(names)])
		for i, name := range names {
			st, err := s.Stat(path.Join(dir, name))
			require.NoError(t, err)
			if st.Kind == storage.KindFile {
				require.Equal(t, st, stats[i])
			}
		}
	}
	every.Each(t, func(t *testing.T, s every.Storage) {
		for _, name := range []string{"f", "p/f1", "p/f2", "p/g", "q/r/f"} {
			s.WriteFile(t, name, name)
		}
		for _, dir := range []string{"", "p", "q"} {
			check(t, s.Storage, dir)
		}
		for _, dir := range []string{"none", "p/f1", "../x", "p/none/none"} {
			_, err := storage.ListStat(s.Storage, dir, func(storage.Item) bool { return true })
			require.Error(t, err, dir)
			require.Error(t, s.Storage.Each(dir, func(storage.Item) bool { return true }), dir)
		}
		files := s.Storage
		if slices.Contains(s.Cannot, "CreatePending") {
			files = pending.New(files, nil)
		}
		for _, name := range []string{"p/f3", "new/f", "q/r/g"} {
			require.NoError(t, files.CreatePending(name, false, storagetest.Content("waiting")))
		}
		for _, dir := range []string{"", "p", "q", "q/r", "new"} {
			check(t, files, dir)
		}
	})
}
