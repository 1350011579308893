package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
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
