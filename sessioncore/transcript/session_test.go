package transcript

import (
	"path/filepath"
	"testing"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// testSession is a session whose file a test changes from outside.
type testSession struct {
	*sessiontest.File
	session *sessioncore.Session
}

func newTestSession(t *testing.T, content string) *testSession {
	f := sessiontest.NewFile(t, content)
	return &testSession{f, sessionIn(t, f.Storage, sessiontest.FileName)}
}

// openSession returns a snapshot of a file on disk.
func openSession(t testing.TB, file string) (*sessioncore.Snapshot, error) {
	return sessiontest.Acquire(t, sessionIn(t, sessiontest.OpenDir(t, filepath.Dir(file)), filepath.Base(file)))
}

// fuzzSession returns the session in a storage of its own that holds data.
func fuzzSession(t *testing.T, data []byte) *sessioncore.Session {
	return sessionIn(t, sessiontest.Memory(t, data), sessiontest.FileName)
}

func sessionIn(t testing.TB, files storage.Storage, name string) *sessioncore.Session {
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	return store.Session(name)
}
