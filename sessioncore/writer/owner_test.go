package writer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/clienttest"
	"sessionfs/sessioncore/storage/dir/dirtest"
)

// TestOwner: each sign of a client is told, the surest first, and none once it has ended. Nothing is locked for that.
func TestOwner(t *testing.T) {
	a, known := startAgent(t)
	owners := t.TempDir()
	leases := clients.NewLeases(owners)
	locks := &countedLocks{Storage: a.Sessions}
	store := sessioncore.NewStore(locks)
	t.Cleanup(store.Close)
	w := New(store, Options{Journal: locks, Clients: known, Leases: leases})
	const name = "p/s.jsonl"
	s := store.Session(name)
	snap, err := s.Acquire(t.Context())
	require.NoError(t, err)
	lease := filepath.Join(owners, snap.LeaseName()+".lock")
	snap.Release()
	is := func(want *Owner) {
		t.Helper()
		got, err := w.Owner(t.Context(), s)
		require.NoError(t, err)
		if got != nil {
			require.NotEmpty(t, got.Command)
			got.Command = ""
		}
		require.Equal(t, want, got)
	}
	is(nil)

	tty, terminal := clienttest.Terminal(t)
	a.Crumb(terminal, name)
	is(nil)
	pid, end := clienttest.Imitation{Stdin: tty, Control: tty, Files: []string{a.Database("agent.db")}}.Start(t)
	crumb := &Owner{Seen: "breadcrumb", PID: pid, Terminal: terminal}
	is(crumb)
	a.Crumb(terminal, "p/another.jsonl")
	is(nil)
	a.Crumb(terminal, name)
	holder, endHolder := clienttest.Imitation{Files: []string{dirtest.Path(a.Sessions, name)}}.Start(t)
	is(&Owner{Seen: "descriptor", PID: holder})
	lessee, endLessee := childtest.Start(t, "lease", lease)
	is(&Owner{Seen: "lease", PID: lessee})

	endLessee()
	is(&Owner{Seen: "descriptor", PID: holder})
	endHolder()
	is(crumb)
	end()
	is(nil)
	require.Zero(t, locks.taken)

	f, err := os.OpenFile(dirtest.Path(a.Sessions, name), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	is(nil) // it is our own
}
