package fs_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the tests of writing share (the files write_*_test.go): a small session, ways to write to it, and
// a look at what that did to the file.

// writing is a mounted session that a test writes to: e0, under it the branches e1 – e2 and e3, where the
// leaf is.
type writing struct {
	agent
	m *mount
}

// writtenEntries are the lines of the entries e0 to e3.
var writtenEntries = []string{
	entry(0, "e0", "", "zero"), entry(1, "e1", "e0", "one"), entry(2, "e2", "e1", "two"), entry(3, "e3", "e0", "three"),
}

// newWriting mounts an agent directory with the session s.
func newWriting(t testing.TB, opts ...mountOption) *writing {
	a := newAgent(t)
	a.write("s", header("s"), strings.Join(writtenEntries, ""))
	return &writing{agent: a, m: mountForTest(t, a.dir, opts...)}
}

// in is a path in the directory of the session s.
func (w *writing) in(parts ...string) string { return w.m.session("s", parts...) }

// raw is the session file as it is on disk.
func (a agent) raw(name string) string {
	b, err := os.ReadFile(a.path(name + ".jsonl"))
	require.NoError(a.t, err)
	return string(b)
}

// remount ends the daemon and starts another one.
func (w *writing) remount(opts ...mountOption) {
	w.m.stop()
	w.m = mountForTest(w.t, w.dir, opts...)
}

// read is what a file of the session's directory shows.
func (w *writing) read(parts ...string) string {
	b, err := os.ReadFile(w.in(parts...))
	require.NoError(w.t, err)
	return string(b)
}

// record is what the tests look at of a line that was written.
type record struct {
	ID       string
	ParentID *string
}

// parent is the parentId, "" for null.
func (r record) parent() string {
	if r.ParentID == nil {
		return ""
	}
	return *r.ParentID
}

// records are the lines of a text, which must all be whole.
func records(t testing.TB, text string) []record {
	t.Helper()
	if text == "" {
		return nil
	}
	require.True(t, strings.HasSuffix(text, "\n"), "the last line is torn: %.200q", text[max(0, len(text)-200):])
	var list []record
	for line := range strings.Lines(text) {
		var r record
		require.NoError(t, json.Unmarshal([]byte(line), &r), "%.300s", line)
		list = append(list, r)
	}
	return list
}

// added are the lines that came to the session since it was before; nothing else may have changed.
func (w *writing) added(before string) []record {
	w.t.Helper()
	now := w.raw("s")
	require.True(w.t, strings.HasPrefix(now, before), "lines that were there have changed")
	return records(w.t, now[len(before):])
}

// message is a line for append.
func message(text string) string {
	return `{"type":"message","message":{"role":"user","content":"` + text + `"}}`
}

// anywhere is the line for a session in a working directory that need not exist.
func anywhere(cwd string) string { return `{"cwd":"` + cwd + `","create":true}` }

// put opens a file for writing, writes, and closes it, as a shell's redirection does.
func put(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// ask writes a line to a control file and returns what reading back gives.
func ask(t testing.TB, path, line string) string {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	require.NoError(t, err, "%.200s", line)
	answer := make([]byte, 64<<10)
	n, err := f.Read(answer)
	require.NoError(t, err, "%.200s", line)
	return strings.TrimSuffix(string(answer[:n]), "\n")
}

// listing is all that is in a directory on disk, with the sizes of files: for what must not leave
// anything behind.
func listing(t testing.TB, dir string) string {
	t.Helper()
	return shell(t, `cd "$1" && find . -printf '%P %y %s\n' | sort`, dir)
}
