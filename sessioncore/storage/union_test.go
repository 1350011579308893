package storage

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is a store of which only the root is asked.
type root struct {
	Files
	state Stat
	err   error
}

func (r root) Stat(string) (Stat, error) { return r.state, r.err }

// A part that is gone, or that this user may not look into, takes nothing from the others.
func TestRoot(t *testing.T) {
	dir := func(uid, mode uint32, changed int64) root {
		return root{state: Stat{
			Token: Token{Inode: 2, Changed: changed}, Kind: KindDir, UID: uid, GID: uid, Mode: mode,
		}}
	}
	gone := root{err: fs.ErrNotExist}
	closed := root{err: fs.ErrPermission}
	for name, c := range map[string]struct {
		parts     []root
		uid, mode uint32
		changed   int64
		err       error
	}{
		"all are there":      {[]root{dir(7, 0o755, 10), dir(8, 0o700, 30), dir(9, 0o711, 20)}, 7, 0o755, 30, nil},
		"the second is gone": {[]root{dir(7, 0o700, 10), gone}, 7, 0o700, 10, nil},
		"the first is gone":  {[]root{gone, dir(8, 0o750, 10)}, 8, 0o750, 10, nil},
		"a closed one":       {[]root{dir(7, 0o700, 10), closed, dir(8, 0o755, 30)}, 7, 0o700, 30, nil},
		"the first, closed":  {[]root{closed, dir(8, 0o755, 30)}, 8, 0o755, 30, nil},
		"a mode of none":     {[]root{dir(7, 0, 10), dir(8, 0o755, 30)}, 7, 0o700, 30, nil},
		"all are gone":       {[]root{gone, gone}, 0, 0o700, 0, nil},
		"gone and closed":    {[]root{gone, closed}, 0, 0, 0, fs.ErrPermission},
	} {
		var parts []Part
		for _, part := range c.parts {
			parts = append(parts, Part{Name: "p", Files: part})
		}
		st, err := Union(parts...).Stat("")
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, []any{c.uid, c.uid, c.mode, c.changed}, []any{st.UID, st.GID, st.Mode, st.Changed}, name)
	}
}

// A part that this user may not look into is listed beside the others, and one that is gone is left out.
func TestListsClosed(t *testing.T) {
	open := root{state: Stat{Kind: KindDir, Mode: 0o700}}
	s := Union(Part{"a", root{err: fs.ErrPermission}}, Part{"b", open}, Part{"c", root{err: fs.ErrNotExist}})
	items, err := ListStat(s, "", func(Item) bool { return true })
	require.NoError(t, err)
	require.Equal(t, []StatItem{{Name: "a", Stat: Stat{Kind: KindDir}}, {Name: "b", Stat: open.state}}, items)
	_, err = ListStat(Union(Part{"a", root{err: fs.ErrInvalid}}), "", func(Item) bool { return true })
	require.ErrorIs(t, err, fs.ErrInvalid)
}
