package view

import (
	"bytes"
	"context"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/markdown/markdowntest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// testLinks are those of a transcript in sessions/<scope>/<session>/.
var testLinks = Links{Entries: "entries/", Blobs: "../../../blobs/"}

// transcriptOf is the transcript at the leaf, with the number of its turns.
func transcriptOf(t testing.TB, s *sessioncore.Snapshot, leaf sessioncore.Entry, links Links) (text []byte, turns int) {
	t.Helper()
	d, err := Render(context.Background(), s, leaf, links)
	text = sessiontest.ReadExactly(t, d, err)
	made, err := newTranscript(context.Background(), s, leaf, links)
	require.NoError(t, err)
	for _, shown := range made.entries {
		if shown.begins {
			turns++
		}
	}
	return text, turns
}

// checkTranscript checks what must hold of any transcript: it is text that does no harm in a terminal, each
// turn has its heading and nothing else has one, nothing in it is HTML or defines a link, its links lead to
// the entries of its branch and to blobs, and blocks stand at the margin.
func checkTranscript(t testing.TB, s *sessioncore.Snapshot, leaf sessioncore.Entry) {
	t.Helper()
	text, turns := transcriptOf(t, s, leaf, testLinks)
	require.True(t, utf8.Valid(text))
	if len(text) == 0 {
		require.Zero(t, turns)
		return
	}
	require.True(t, bytes.HasSuffix(text, []byte("\n")))
	for _, r := range string(text) {
		if r == '\n' || r == '\t' {
			continue
		}
		isControl := r < ' ' || r == '\x7f'
		require.False(t, isControl || markdown.Obeyed(r), "%q", r)
	}
	for name, p := range markdowntest.Judges {
		v := markdowntest.Judge(p, text)
		require.Empty(t, v.Wrong, "%s:\n%s", name, text)
		require.Len(t, v.Headings, 1+turns, "%s: %q\n%s", name, v.Headings, text)
		for _, heading := range v.Headings {
			require.NotContains(t, heading, " in ListItem", "%s\n%s", name, text)
			require.NotContains(t, heading, " in Blockquote", "%s\n%s", name, text)
		}
	}
	// Written elsewhere, it differs in its links alone.
	other, again := transcriptOf(t, s, leaf, Links{Entries: "../E/", Blobs: "../../B/"})
	require.Equal(t, turns, again)
	back := strings.NewReplacer("](../E/", "](entries/", "](../../B/", "](../../../blobs/").Replace(string(other))
	if !strings.Contains(string(text), "](../") && !bytes.Contains(text, []byte("E/")) {
		require.Equal(t, string(text), back)
	}
}

// checkLinks checks that the links that we make lead to entries of the session or to blobs.
func checkLinks(t testing.TB, s *sessioncore.Snapshot, text []byte) (entries, blobs int) {
	judged := markdowntest.Judge(markdowntest.Judges["CommonMark"], text)
	for _, link := range judged.Links {
		escaped, isEntry := strings.CutPrefix(link, testLinks.Entries)
		if isEntry {
			name, err := url.PathUnescape(escaped)
			require.NoError(t, err)
			_, err = s.FindName(strings.TrimSuffix(name, ".json"))
			require.NoError(t, err, link)
			entries++
		}
		hash, isBlob := strings.CutPrefix(link, testLinks.Blobs)
		if isBlob {
			require.True(t, document.IsBlobHash(hash), link)
			blobs++
		}
	}
	return entries, blobs
}

// requireGolden compares a text with a golden file. SESSIONFS_UPDATE_GOLDEN writes the golden files anew; look at the
// difference as a reader would.
func requireGolden(t *testing.T, file, text string) {
	t.Helper()
	if os.Getenv("SESSIONFS_UPDATE_GOLDEN") != "" {
		sessiontest.WriteFile(t, file, text)
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, file)
}

// TestTranscriptsOfTheDemo: they are kept in testdata/transcripts, to be read.
func TestTranscriptsOfTheDemo(t *testing.T) {
	n := 0
	require.NoError(t, filepath.WalkDir(sessiontest.DemoDir(t), func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".jsonl") {
			return err
		}
		n++
		s, err := openSession(t, file)
		require.NoError(t, err)
		checkTranscript(t, s, sessiontest.Leaf(t, s))
		text, _ := transcriptOf(t, s, sessiontest.Leaf(t, s), testLinks)
		checkLinks(t, s, text)
		if strings.Contains(file, "2026-03-31") {
			return nil // forked from the one before: much of it is the same
		}
		requireGolden(t, filepath.Join("testdata/transcripts", strings.TrimSuffix(filepath.Base(file), ".jsonl")+".md"), string(text))
		return nil
	}))
	require.Equal(t, 6, n)
}

// TestTranscriptsOfTheCases: the leaf and some other entries of every oddity of the format.
func TestTranscriptsOfTheCases(t *testing.T) {
	require.Greater(t, checkTranscripts(t, "../../testdata/cases/*.jsonl", 3), 70)
}

func TestTranscriptsOfConformance(t *testing.T) {
	sessiontest.NotUnderRace(t)
	checked := 0
	for _, c := range sessiontest.Cases(t) {
		checked += checkTranscripts(t, filepath.Join(c.Dir, "agent/sessions/*/*.jsonl"), 1)
	}
	require.Greater(t, checked, 55)
}

// checkTranscripts checks those of the leaf and of some other entries of each session.
func checkTranscripts(t *testing.T, pattern string, others int) (checked int) {
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		s, err := openSession(t, file)
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession, file)
			continue
		}
		checked++
		checkTranscript(t, s, sessiontest.Leaf(t, s))
		step := 1 + s.Len()/others
		for e := 0; e < s.Len(); e += step {
			checkTranscript(t, s, sessioncore.Entry(e))
		}
	}
	return checked
}

// transcriptBody is what a transcript shows of messages, without what stands above the first of them.
func transcriptBody(t *testing.T, lines ...string) string {
	t.Helper()
	snap := snapshotOf(t, sessiontest.Header, lines...)
	checkTranscript(t, snap, sessiontest.Leaf(t, snap))
	text, _ := transcriptOf(t, snap, sessiontest.Leaf(t, snap), testLinks)
	checkLinks(t, snap, text)
	if len(text) == 0 {
		return ""
	}
	_, body, ok := strings.Cut(string(text), "\nSession `")
	require.True(t, ok)
	_, body, _ = strings.Cut(body, ".\n")
	return body
}

// testSession is a session whose file a test changes from outside.
type testSession struct {
	*sessiontest.File
	session *sessioncore.Session
}

func newTestSession(t *testing.T, content string) *testSession {
	f := sessiontest.NewFile(t, content)
	return &testSession{f, sessionIn(t, f.Storage, sessiontest.FileName)}
}

// snapshotOf returns a snapshot of a session with a header and lines.
func snapshotOf(t *testing.T, header string, lines ...string) *sessioncore.Snapshot {
	t.Helper()
	return sessiontest.Snapshot(t, newTestSession(t, header+strings.Join(lines, "")).session)
}

// openSession returns a snapshot of a file on disk.
func openSession(t testing.TB, file string) (*sessioncore.Snapshot, error) {
	files := sessiontest.OpenDir(t, filepath.Dir(file))
	session := sessionIn(t, files, filepath.Base(file))
	return sessiontest.Acquire(t, session)
}

func sessionIn(t testing.TB, files storage.Storage, name string) *sessioncore.Session {
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	return store.Session(name)
}
