package report

import (
	"testing"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// testSession is a session whose file a test changes from outside.
type testSession struct {
	*sessiontest.File
	session *sessioncore.Session
}

func newTestSession(t *testing.T, content string) *testSession {
	f := sessiontest.NewFile(t, content)
	store := sessioncore.NewStore(f.Storage)
	t.Cleanup(store.Close)
	return &testSession{f, store.Session(sessiontest.FileName)}
}
