package writer

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// TestCWDHeader: of the header exactly those members change that change in the client.
func TestCWDHeader(t *testing.T) {
	for name, test := range map[string]struct {
		slot         bool
		header, want string // the members behind the id
	}{
		"plain":                        {false, `"cwd":"/old","n":1.0`, `"cwd":"CWD","n":1.0`},
		"none":                         {false, `"n":1`, `"n":1,"cwd":"CWD"`},
		"no text":                      {false, `"cwd":7`, `"cwd":"CWD"`},
		"repeated":                     {false, `"cwd":"/first","cwd":"/old"`, `"cwd":"/first","cwd":"CWD"`},
		"with a slot":                  {true, `"cwd":"/old"`, `"cwd":"CWD","previousSessionFiles":["FROM"]`},
		"moved before":                 {true, `"previousSessionFiles":["/a"],"cwd":"/old"`, `"previousSessionFiles":["/a","FROM"],"cwd":"CWD"`},
		"moved before, without a slot": {false, `"previousSessionFiles":["/a"],"cwd":"/old"`, `"previousSessionFiles":["/a","FROM"],"cwd":"CWD"`},
		"been there before":            {true, `"cwd":"/old","previousSessionFiles":[ "FROM" ]`, `"cwd":"CWD","previousSessionFiles":[ "FROM" ]`},
		"no list":                      {true, `"cwd":"/old","previousSessionFiles":7`, `"cwd":"CWD","previousSessionFiles":["FROM"]`},
		"further directories": {true, `"additionalDirectories":["/b","CWD","/c"],"cwd":"/old"`,
			`"additionalDirectories":["/b","/c"],"cwd":"CWD","previousSessionFiles":["FROM"]`},
		"further directories stay":   {false, `"additionalDirectories":[ "/b" ],"cwd":"/old"`, `"additionalDirectories":[ "/b" ],"cwd":"CWD"`},
		"the only further directory": {false, `"additionalDirectories":["CWD"],"cwd":"/old"`, `"cwd":"CWD"`},
		"no further directories":     {false, `"additionalDirectories":[],"cwd":"/old"`, `"cwd":"CWD"`},
		"not the client's":           {false, `"additionalDirectories":"CWD","cwd":"/old"`, `"additionalDirectories":"CWD","cwd":"CWD"`},
	} {
		t.Run(name, func(t *testing.T) {
			disk, cwd := sessiontest.OpenDir(t, t.TempDir()), t.TempDir()
			fill := strings.NewReplacer("CWD", cwd, "FROM", filepath.Join(disk.Path(), plainName))
			before, rest := "", "\nnot JSON\n"+plainUser+"{\"torn\":"
			if test.slot {
				before = string(titleSlot("A title", titleByUser, plainNow))
			}
			const head = `{"type":"session","version":3,"id":"s",`
			w := startWriting(t, disk, before+fill.Replace(head+test.header)+"}"+rest, Options{Root: disk.Path()})
			require.NoError(t, w.SetCWD(t.Context(), w.session, cwd+"/./"))
			to := clients.AbsoluteScope(cwd) + "/session.jsonl"
			require.Equal(t, before+fill.Replace(head+test.want)+"}"+rest, fileContent(t, disk, to), "everything else is carried over")
			_, err := disk.Stat(plainName)
			require.ErrorIs(t, err, fs.ErrNotExist)
			was := fileStat(t, disk, to)
			require.NoError(t, w.SetCWD(t.Context(), w.store.Session(to), cwd))
			require.Equal(t, was, fileStat(t, disk, to), "what is there already changes nothing")
		})
	}
}

func fileStat(t *testing.T, files storage.Files, name string) storage.Stat {
	st, err := files.Stat(name)
	require.NoError(t, err)
	return st
}

// TestCWDRefused: what cannot be done is refused with a reason, and nothing has changed.
func TestCWDRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	scope := clients.AbsoluteScope(dir)
	for name, test := range map[string]struct {
		line  string
		there []string // other files, directories with a slash
		opts  Options
		want  error
		says  string
	}{
		"relative":               {"project", nil, Options{}, sessioncore.ErrInvalid, "an absolute path"},
		"empty":                  {"", nil, Options{}, sessioncore.ErrInvalid, "an absolute path"},
		"a control character":    {dir + "\x1b[1m", nil, Options{}, sessioncore.ErrInvalid, "without control characters"},
		"a C1 character":         {dir + "\u0085", nil, Options{}, sessioncore.ErrInvalid, "without control characters"},
		"no UTF-8":               {dir + "\xff", nil, Options{}, sessioncore.ErrInvalid, "in UTF-8"},
		"too long":               {"/" + strings.Repeat("x", sessioncore.MaxPath), nil, Options{}, sessioncore.ErrInvalid, "4095 bytes"},
		"missing":                {dir + "/none", nil, Options{}, ErrNoDirectory, dir + "/none"},
		"a file":                 {file, nil, Options{}, unix.ENOTDIR, file},
		"behind a file":          {file + "/x", nil, Options{}, unix.ENOTDIR, ""},
		"read-only":              {dir, nil, Options{ReadOnly: true}, sessioncore.ErrReadOnly, ""},
		"the name is taken":      {dir, []string{scope + "/session.jsonl"}, Options{}, fs.ErrExist, scope + "/session.jsonl"},
		"its artifacts'":         {dir, []string{"scope/session/", scope + "/session/"}, Options{}, fs.ErrExist, scope + "/session"},
		"others' artifacts":      {dir, []string{scope + "/session/1.log"}, Options{}, fs.ErrExist, scope + "/session"},
		"a file in the way":      {dir, []string{scope}, Options{}, unix.ENOTDIR, scope},
		"artifacts no directory": {dir, []string{"scope/session"}, Options{}, unix.ENOTDIR, "scope/session"},
		"in artifacts":           {dir, []string{"scope.jsonl"}, Options{}, sessioncore.ErrInvalid, "the artifacts of scope"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := sessiontest.OpenDir(t, t.TempDir())
			for _, name := range test.there {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(disk.Path(), name)), 0o700))
				if strings.HasSuffix(name, "/") {
					require.NoError(t, os.MkdirAll(filepath.Join(disk.Path(), name), 0o700))
				} else {
					require.NoError(t, os.WriteFile(filepath.Join(disk.Path(), name), []byte("theirs"), 0o600))
				}
			}
			w := startWriting(t, disk, plainFile, test.opts)
			before := snapshotOf(t, disk.Path())
			err := w.SetCWD(t.Context(), w.session, test.line)
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.says)
			require.Equal(t, before, snapshotOf(t, disk.Path()))
			require.Equal(t, plainFile, w.content())
		})
	}
}

// TestCWDOtherFiles: old versions are migrated, the dialects keep their header, and what lies in no directory stays.
func TestCWDOtherFiles(t *testing.T) {
	for name, test := range map[string]struct {
		file, header, want, rest string
		flat                     bool
	}{
		"version 2": {plainName, `{"type":"session","version":2,"id":"s","cwd":"/old"}`, `{"type":"session","version":3,"id":"s","cwd":"CWD"}`,
			plainUser, false},
		"pi": {plainName, `{"type":"session","version":3,"id":"s","cwd":"/old"}`, `{"type":"session","version":3,"id":"s","cwd":"CWD"}`,
			`{"type":"session_info","id":"a","parentId":null,"timestamp":"2026-02-16T10:21:00.000Z","name":"n"}` + "\n", false},
		"pi's own directory": {"session.jsonl", `{"type":"session","version":3,"id":"s","cwd":"/old"}`, `{"type":"session","version":3,"id":"s","cwd":"CWD"}`,
			`{"type":"session_info","id":"a","parentId":null,"timestamp":"2026-02-16T10:21:00.000Z","name":"n"}` + "\n", true},
		"operator": {"session.jsonl", `{"type":"session_header","id":"s","timestamp":"2026-02-16T10:20:30Z","cwd":"/old"}`,
			`{"type":"session_header","id":"s","timestamp":"2026-02-16T10:20:30Z","cwd":"CWD"}`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			disk, cwd := sessiontest.OpenDir(t, t.TempDir()), t.TempDir()
			w := startWriting(t, disk, "", Options{Flat: test.flat, Root: disk.Path()})
			putFile(t, disk, test.file, test.header+"\n"+test.rest)
			require.NoError(t, w.SetCWD(t.Context(), w.store.Session(test.file), cwd))
			to := test.file
			if storage.Dir(to) != "" {
				to = clients.AbsoluteScope(cwd) + "/session.jsonl"
			}
			require.Equal(t, strings.ReplaceAll(test.want, "CWD", cwd)+"\n"+test.rest, fileContent(t, disk, to))
		})
	}
}

// brokenMove is a storage in which nothing can be moved.
type brokenMove struct{ *dir.Storage }

func (brokenMove) Move(string, string, string) error { return unix.EXDEV }

// TestCWDTakenBack: where the file cannot be moved its header is as it was.
func TestCWDTakenBack(t *testing.T) {
	disk, cwd := sessiontest.OpenDir(t, t.TempDir()), t.TempDir()
	content := string(titleSlot("A title", titleByUser, plainNow)) + strings.Replace(plainFile, `"cwd"`, `"additionalDirectories":["`+cwd+`"],"cwd"`, 1)
	putFile(t, disk, plainName, content)
	w := startWriting(t, brokenMove{disk}, "", Options{})
	require.ErrorIs(t, w.SetCWD(t.Context(), w.session, cwd), unix.EXDEV)
	snap := w.snapshot()
	header, _, err := snap.ReadHeader()
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"session","version":3,"id":"s1","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/home/dev/pi","additionalDirectories":["`+
		cwd+`"]}`, string(header))
	require.True(t, strings.HasSuffix(w.content(), plainUser+plainReply))
}

// syncs notes the files that a writer makes durable.
type syncs struct {
	*dir.Storage
	names []string
}

func (s *syncs) Sync(name string) error {
	s.names = append(s.names, name)
	return s.Storage.Sync(name)
}

// TestCWDCompletes: a move that was killed after the header was written, and the artifacts were moved, is completed by
// another attempt. The session is durable before it moves, though nothing changes in it.
func TestCWDCompletes(t *testing.T) {
	disk, cwd := sessiontest.OpenDir(t, t.TempDir()), t.TempDir()
	putFile(t, disk, clients.AbsoluteScope(cwd)+"/session/1.log", "out")
	content := strings.Replace(plainFile, "/home/dev/pi", cwd, 1)
	w := startWriting(t, disk, content, Options{})
	w.opts.Scope = func(_ context.Context, dir, except string) (string, error) {
		require.Equal(t, []string{cwd, plainName}, []string{dir, except})
		return "", nil
	}
	journal := &syncs{Storage: disk}
	w.opts.Journal = journal
	require.NoError(t, w.SetCWD(t.Context(), w.session, cwd))
	require.Equal(t, []string{plainName}, journal.names)
	require.Equal(t, content, fileContent(t, disk, clients.AbsoluteScope(cwd)+"/session.jsonl"))
}

// TestCWDKeepsLeafInMemory: a leaf that was moved in memory only is where it was.
func TestCWDKeepsLeafInMemory(t *testing.T) {
	disk, cwd := sessiontest.OpenDir(t, t.TempDir()), t.TempDir()
	w := startWriting(t, disk, plainFile, Options{LeafMemory: true})
	require.NoError(t, w.MoveLeaf(t.Context(), w.session, "a"))
	require.NoError(t, w.SetCWD(t.Context(), w.session, cwd))
	w.session = w.store.Session(clients.AbsoluteScope(cwd) + "/session.jsonl")
	require.Equal(t, "a", w.leaf())
}

// TestCWDShownIsWrittenBack: what the file cwd shows of a directory with control characters is that directory.
func TestCWDShownIsWrittenBack(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	putFile(t, disk, "x/session.jsonl", `{"type":"session","version":3,"id":"s","cwd":"/a\nb"}`+"\n")
	w := startWriting(t, disk, "", Options{Scope: func(context.Context, string, string) (string, error) { return "x", nil }})
	before := snapshotOf(t, disk.Path())
	require.NoError(t, w.SetCWD(t.Context(), w.store.Session("x/session.jsonl"), `/a\nb`))
	require.Equal(t, before, snapshotOf(t, disk.Path()))
}

// snapshotOf lists all files below a directory, with the text of the sessions.
func snapshotOf(t *testing.T, top string) (files map[string]string) {
	files = map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(path string, item fs.DirEntry, err error) error {
		if err == nil && item.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			files[path] = string(text)
		}
		return err
	}))
	return files
}

// TestScopeOfTheClient: where the directory is that clients make for a working directory, a new session goes there, although
// others of it lie elsewhere.
func TestScopeOfTheClient(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	w := startWriting(t, disk, "", Options{Scope: func(context.Context, string, string) (string, error) { return "elsewhere", nil }})
	for _, there := range []bool{false, true} {
		if there {
			require.NoError(t, disk.MkdirAll(clients.AbsoluteScope("/srv/w")))
		}
		name, err := w.NewSession(t.Context(), NewSession{Create: true, CWD: "/srv/w"})
		require.NoError(t, err)
		require.Equal(t, map[bool]string{false: "elsewhere", true: clients.AbsoluteScope("/srv/w")}[there], storage.Dir(name))
	}
}
