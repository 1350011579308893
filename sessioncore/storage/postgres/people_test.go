package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestPeopleNames: everybody has a name of his own, which is nobody else's later.
func TestPeopleNames(t *testing.T) {
	const (
		ann  = "/home/ann/.omp/agent/sessions/"
		mac  = "/Users/ann/.omp/agent/sessions/"
		data = "/home/ann/.local/share/omp/sessions/"
		bob  = "/srv/bob/sessions/"
		root = "/root/.omp/agent/sessions/"
	)
	meet := func(batches ...[]string) map[string]string {
		p := &people{nameOf: map[string]string{}, prefixOf: map[string]string{}}
		for _, batch := range batches {
			p.assignNames(batch...)
		}
		for prefix, name := range p.nameOf {
			require.NoError(t, storage.CheckName(name))
			require.Equal(t, prefix, p.prefixOf[name])
			require.Equal(t, name+"/p/x", p.name(prefix+"p/x", false))
			require.Equal(t, prefix+"p/x", p.path(name+"/p/x"))
		}
		return p.nameOf
	}
	require.Equal(t, map[string]string{ann: "ann", bob: "bob", root: "root"}, meet([]string{ann, bob, root}))
	both := map[string]string{ann: "ann@home", mac: "ann@Users"}
	require.Equal(t, both, meet([]string{ann, mac}))
	require.Equal(t, both, meet([]string{mac, ann}))
	require.Equal(t, map[string]string{ann: "ann", mac: "ann@Users"}, meet([]string{ann}, []string{mac}), "who comes while it is open")
	three := meet([]string{ann, mac, data})
	require.Equal(t, "ann@Users", three[mac])
	require.Regexp(t, `^ann@[0-9a-f]{8}$`, three[ann])
	require.NotEqual(t, three[ann], three[data])
	require.Len(t, meet([]string{"/sessions/", "/.hidden/sessions/", "/./sessions/"}), 3)
}

// TestPeople: rows are read and written at their own paths, by the names of those who have them.
func TestPeople(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	const ann, bob = "/home/ann/.omp/agent/sessions/", "/Users/bob/.omp/agent/sessions/"
	table.Write(t, ann+"p/x.jsonl", "of ann\n")
	table.Write(t, bob+"p/x.jsonl", "of bob\n")
	table.Write(t, "no-directory.jsonl", "of nobody\n")
	s := open(t, table.Source(""), Options{})
	names := func(dir string) (names []string) {
		items, err := storage.List(s, dir)
		require.NoError(t, err)
		for _, item := range items {
			names = append(names, item.Name)
		}
		return names
	}
	require.Equal(t, []string{"ann", "bob"}, names(""))
	require.Equal(t, "of bob\n", storagetest.Read(t, s, "bob/p/x.jsonl"))
	_, err := s.Append("bob/p/x.jsonl", []byte("more\n"))
	require.NoError(t, err)
	require.Equal(t, "of bob\nmore\n", table.Content(t, bob+"p/x.jsonl"))
	require.Equal(t, "of ann\n", table.Content(t, ann+"p/x.jsonl"))
	_, err = s.Replace("ann/q/y.jsonl", storage.Replacement{Write: storagetest.Content("new\n")})
	require.NoError(t, err)
	require.Equal(t, "new\n", table.Content(t, ann+"q/y.jsonl"))
	_, err = s.Replace("eve/q/y.jsonl", storage.Replacement{Write: storagetest.Content("new\n")})
	require.ErrorIs(t, err, unix.EPERM)
	require.Empty(t, s.NameOf("/home/eve/sessions/x"))
	table.Write(t, "/home/eve/sessions/z.jsonl", "later\n")
	require.Equal(t, []string{"ann", "bob", "eve"}, names(""))
	require.Equal(t, "eve/z.jsonl", s.NameOf("/home/eve/sessions/z.jsonl"))
}
