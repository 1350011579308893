package sessioncore

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListStat: a directory's states are those of List and Stat, in every storage.
func TestListStat(t *testing.T) {
	check := func(t *testing.T, s Storage, dir string) {
		all, err := s.List(dir)
		require.NoError(t, err)
		var names []string
		for _, want := range []string{"", "f"} { // all, or a part
			items, err := ListStat(s, dir, func(i Item) bool { return strings.HasPrefix(i.Name, want) })
			require.NoError(t, err)
			slices.SortFunc(items, func(a, b StatItem) int { return strings.Compare(a.Name, b.Name) })
			n := 0
			for _, item := range all {
				if !strings.HasPrefix(item.Name, want) {
					continue
				}
				st, err := s.Stat(path.Join(dir, item.Name))
				require.NoError(t, err)
				require.Equal(t, StatItem{item.Name, st}, items[n])
				n++
			}
			require.Len(t, items, n)
		}
		for _, item := range all {
			names = append(names, item.Name)
		}
		var stats []Stat
		err = StatNames(s, dir, append(names, "no such name"), func(i int, st Stat) {
			require.Len(t, stats, i)
			stats = append(stats, st)
		})
		require.NoError(t, err)
		require.Len(t, stats, len(names)+1)
		require.Equal(t, Stat{}, stats[len(names)])
		for i, name := range names {
			st, err := s.Stat(path.Join(dir, name))
			require.NoError(t, err)
			if st.Kind == KindFile {
				require.Equal(t, st, stats[i])
			}
		}
	}
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		for _, name := range []string{"f", "p/f1", "p/f2", "p/g", "q/r/f"} {
			s.writeFile(t, name, name)
		}
		for _, dir := range []string{"", "p", "q"} {
			check(t, s.Storage, dir)
		}
		for _, dir := range []string{"none", "p/f1", "../x", "p/none/none"} {
			_, err := ListStat(s.Storage, dir, func(Item) bool { return true })
			require.Error(t, err, dir)
		}
		pending := NewPendingStorage(s.Storage)
		for _, name := range []string{"p/f3", "new/f", "q/r/g"} {
			require.NoError(t, pending.Create(name, []byte("waiting"), false))
		}
		for _, dir := range []string{"", "p", "q", "q/r", "new"} {
			check(t, pending, dir)
		}
	})
}

// TestListingTogether: many ask while files change.
func TestListingTogether(t *testing.T) {
	storage := NewMemoryStorage()
	l := newListing(t, storage)
	require.NoError(t, storage.WriteFile("p/steady.jsonl", []byte(headerLine("steady", "/w"))))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 100 {
				name := fmt.Sprintf("p%d/%d.jsonl", g, n%5)
				if n%7 == 0 {
					_ = storage.Remove(name)
				} else if err := storage.WriteFile(name, []byte(headerLine(name, "/w"))); err != nil {
					t.Error(err)
				}
				found, err := l.Look()
				if err != nil || len(found.All()) == 0 {
					t.Error(err)
				}
				if info, err := l.Resume("steady"); err != nil || info.ID != "steady" {
					t.Error(err)
				}
				if e, err := l.CwdFind("/w", "steady"); err != nil || e.Session.ID != "steady" {
					t.Error(err)
				}
				if doc := found.Index(); doc.Size() != found.IndexSize() {
					t.Error("index")
				}
			}
		})
	}
	wg.Wait()
}
