package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// updateEnv makes TestPages write the outcomes into its pages.
const updateEnv = "SESSIONFS_UPDATE_PAGES"

// pageFiles are sessions that pages name by "@" and a name; other names are those of testdata/cases.
var pageFiles = map[string]string{
	"header": plainHeader, "session": plainFile, "slot": string(titleSlot("old", titleByUser, plainNow)),
	"late-slot": string(titleSlot("late", titleByUser, "2026-03-02T00:00:00.000Z")),
	"auto-slot": string(titleSlot("old", titleByAuto, plainNow)), "unknown-slot": string(titleSlot("old", "", plainNow)),
	"empty-slot": string(titleSlot("", "", plainNow)),
	"op-header":  opHeader, "op-session": opFile, "version-1": oldFile,
}

// commands are the commands of pages. They return their answer, which a page shows beside the change of the session.
var commands = map[string]func(w *writing, arg string) (shows string, err error){
	"append": func(w *writing, lines string) (string, error) {
		var all []string
		for line := range strings.SplitSeq(lines, "\n") {
			all = append(all, unquoted(line))
		}
		before := len(w.state().entries)
		ids, err := w.append(all...)
		for i, e := range w.state().entries[before:] {
			require.Contains(w.t, e, `"id":"`+ids[i]+`"`)
		}
		return "", err
	},
	"label": func(w *writing, line string) (string, error) {
		id, label, err := ParseLabelLine(line)
		if err != nil {
			return "", err
		}
		return "", w.SetLabel(w.t.Context(), w.session, id, label)
	},
	"leaf": func(w *writing, id string) (string, error) {
		if id == "" {
			return "", w.MoveLeaf(w.t.Context(), w.session, nil)
		}
		return "", w.MoveLeaf(w.t.Context(), w.session, &id)
	},
	"title": func(w *writing, title string) (string, error) {
		return "", w.SetTitle(w.t.Context(), w.session, unquoted(title))
	},
	"fork": func(w *writing, id string) (string, error) { return w.made(w.forkIn(w.snapshot(), id)) },
	"new": func(w *writing, line string) (string, error) {
		spec, err := ParseNewSession([]byte(unquoted(line)))
		if err != nil {
			return "", err
		}
		return w.made(w.NewSession(w.t.Context(), spec))
	},
	"cwd": func(w *writing, line string) (string, error) {
		if err := w.SetCWD(w.t.Context(), w.session, unquoted(line)); err != nil {
			return "", err
		}
		to := clients.AbsoluteScope(path.Clean(line)) + "/" + path.Base(plainName)
		if _, err := w.storage.Stat(to); err != nil || to == w.session.Name() {
			return "", nil
		}
		w.session = w.store.Session(to)
		return to, nil
	},
	"import": func(w *writing, lines string) (string, error) { return w.imports(copyOf(fromPage(w.t, lines))) },
	"artifact": func(w *writing, text string) (string, error) {
		c := copyOf(text)
		c.Artifact = true
		return w.imports(c)
	},
	"show": func(w *writing, _ string) (string, error) { return w.show() },
	// The agent directory is that of a program, or lies at a path.
	"program": func(w *writing, name string) (string, error) {
		program, ok := map[string]sessioncore.Program{
			"unknown": sessioncore.ByUnknown, "omp": sessioncore.ByOMP, "pi": sessioncore.ByPi, "likely-pi": sessioncore.LikelyByPi,
		}[name]
		require.True(w.t, ok, name)
		w.store = sessioncore.NewStore(w.storage)
		w.t.Cleanup(w.store.Close)
		w.store.SetProgram(func(string) sessioncore.Program { return program })
		w.session = w.store.Session(plainName)
		return "", nil
	},
	"root": func(w *writing, path string) (string, error) { w.opts.Root = path; return "", nil },
	"flat": func(w *writing, _ string) (string, error) { w.opts.Flat = true; return "", nil },
	// Another program adds lines to the session, or writes a file.
	"other": func(w *writing, lines string) (string, error) {
		_, err := w.opts.Journal.Append(plainName, []byte(fromPage(w.t, lines)))
		require.NoError(w.t, err)
		return w.show()
	},
	"file": func(w *writing, text string) (string, error) {
		name, text, _ := strings.Cut(text, "\n")
		putFile(w.t, w.storage, name, fromPage(w.t, text))
		return "", nil
	},
}

// made returns the name and the lines of a session that was made, unless that failed with err. Its file must have no problems.
func (w *writing) made(name string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text := fileContent(w.t, w.storage, name)
	require.True(w.t, strings.HasSuffix(text, "\n"))
	require.Empty(w.t, problemsOf(w.t, sessiontest.Snapshot(w.t, w.store.Session(name))))
	return name + "\n" + text, nil
}

// imports imports a copy of the session and returns the outcome, which must be the one foretold. A new file has the copy's time.
func (w *writing) imports(c Copy) (string, error) {
	foretold, err := w.Examine(w.t.Context(), plainName, c)
	outcome, importErr := w.Import(w.t.Context(), plainName, c)
	require.Equal(w.t, []any{foretold, err}, []any{outcome, importErr})
	info, err := os.Stat(filepath.Join(w.storage.(*dir.Storage).Path(), plainName))
	require.NoError(w.t, err)
	require.Equal(w.t, outcome == Added, info.ModTime().Equal(c.Modified))
	require.Equal(w.t, os.FileMode(storage.FileMode), info.Mode())
	if again, err := w.Import(w.t.Context(), plainName, c); importErr == nil {
		require.Equal(w.t, []any{Unchanged, nil}, []any{again, err})
	}
	return string(outcome), importErr
}

// fromPage returns the lines of a page as a file: "@" and a name stands for one of pageFiles, a Go string has no newline.
func fromPage(t testing.TB, lines string) (file string) {
	for line := range strings.SplitSeq(lines, "\n") {
		name, isName := strings.CutPrefix(line, "@")
		switch content, ok := pageFiles[name]; {
		case ok && isName:
			file += content
		case isName:
			text, err := os.ReadFile("../../testdata/cases/" + name + ".jsonl")
			require.NoError(t, err)
			file += string(text)
		case strings.HasPrefix(line, `"`):
			file += unquoted(line)
		case line != "":
			file += line + "\n"
		}
	}
	return file
}

// unquoted returns the text of a Go string, and any other text as it is.
func unquoted(text string) string {
	plain, err := strconv.Unquote(text)
	if err != nil {
		return text
	}
	return plain
}

// shown describes a session: its dialect, the ids of its entries with those of their parents, its leaf, title and labels.
func shown(t testing.TB, s *sessioncore.Session) (string, error) {
	snap, err := sessiontest.Acquire(t, s)
	if err != nil {
		return "", err
	}
	id := func(e sessioncore.Entry) string {
		if e == sessioncore.NoEntry {
			return "null"
		}
		id, _ := snap.ID(e)
		return id
	}
	text := rulePrefixes[snap.Dialect()] + ":"
	for e := range sessioncore.Entry(snap.Len()) {
		text += " " + id(e) + "<" + id(snap.Parent(e))
	}
	title, err := snap.Title()
	require.NoError(t, err)
	text += fmt.Sprintf("; leaf %s; title %+q", id(sessiontest.Leaf(t, snap)), title)
	for _, label := range snap.Labels() {
		text += fmt.Sprintf("; label %s %+q", label.Target, label.Label)
	}
	return text, nil
}

// show is shown for the session, which must be the same when its file is read as a whole.
func (w *writing) show() (string, error) {
	grown, err := shown(w.t, w.session)
	store := sessioncore.NewStore(w.storage)
	defer store.Close()
	store.SetProgram(w.store.Program)
	whole, _ := shown(w.t, store.Session(w.session.Name()))
	require.Equal(w.t, whole, grown)
	return grown, err
}

// madeID matches the ids of sessions that are made, entryID finds that of an entry in its line.
var madeID, entryID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`), regexp.MustCompile(`"id":"(.*?)"`)

// marked returns the lines of a text as a page shows them, each behind a mark. Of a line that is in the file before, it shows
// the id alone.
func marked(mark, text, before string) (lines string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		id := entryID.FindStringSubmatch(line)
		wasBefore := strings.Contains("\n"+before, "\n"+line+"\n")
		switch {
		case id != nil && wasBefore:
			line = "... " + id[1]
		case !strconv.CanBackquote(line):
			line = strconv.Quote(line)
		}
		lines += mark + " " + madeID.ReplaceAllString(line, "ID") + "\n"
	}
	isOfFile := mark != "=" && mark != "!"
	if isOfFile && !strings.HasSuffix(text, "\n") {
		lines = strings.TrimSuffix(lines, "\n") + " (no newline)\n"
	}
	return lines
}

// play plays a case of a page and returns it as a transcript. The case is the lines of a session, then commands, each behind "$ "
// and with further lines. A command's effects follow it: "+" marks a line that the session got, "~" one of a session that was
// replaced, "*" one of a session that was changed in place, "=" a result, and "!" an error. /ROOT stands for the directory of
// sessions, /CWD for an empty one. In each case the entries before stay, an error changes no file, and the same label, leaf, title
// or cwd once more writes nothing.
func play(t *testing.T, text string) string {
	disk, cwd := sessiontest.OpenDir(t, t.TempDir()), t.TempDir()
	text = regexp.MustCompile(`(?m)^[-+~*=!] .*\n`).ReplaceAllString(text, "")
	text = strings.NewReplacer("/ROOT", disk.Path(), "/CWD", cwd, "--CWD--", clients.AbsoluteScope(cwd)).Replace(text)
	steps := strings.Split(text, "$ ")
	w := startWriting(t, disk, fromPage(t, steps[0]), Options{})
	out := steps[0]
	for _, step := range steps[1:] {
		out += "$ " + step
		verb := step[:strings.IndexAny(step, " \n")]
		arg := strings.TrimPrefix(strings.TrimSuffix(step[len(verb):], "\n"), " ")
		do, ok := commands[verb]
		require.True(t, ok, verb)
		before := w.state()
		shows, err := do(w, arg)
		after, rest := w.state(), ""
		require.Equal(t, before.entries, after.entries[:len(before.entries)], step)
		switch added, isAppend := strings.CutPrefix(after.content, before.content); {
		case !isAppend && before.token.SameObject(after.token):
			rest = marked("*", after.content, before.content)
		case !isAppend:
			rest = marked("~", after.content, before.content)
		case added != "" && verb != "other":
			rest = marked("+", added, "")
			require.LessOrEqual(t, after.problems, before.problems, step)
		}
		if shows != "" {
			rest += marked("=", shows, before.content)
		}
		if err != nil {
			require.True(t, maps.Equal(after.files, before.files) || verb == "append", "%s: %v", step, err)
			for _, kind := range refusals {
				require.Equal(t, strings.Contains(err.Error(), kind.Error()), errors.Is(err, kind), err)
			}
			rest += marked("!", err.Error(), "")
		} else if slices.Contains([]string{"label", "leaf", "title", "cwd"}, verb) {
			_, _ = do(w, arg)
			require.Equal(t, after, w.state(), "%s: what is there already writes nothing", step)
		}
		out += rest
	}
	return strings.NewReplacer(disk.Path(), "/ROOT", cwd, "/CWD", clients.AbsoluteScope(cwd), "--CWD--").Replace(out)
}

// pageState is a session's file, with its entries as the mount shows them, the number of problems, and all files.
type pageState struct {
	files    map[string]string
	content  string
	token    storage.Token
	entries  []string
	problems int
}

// state returns the present state. A file that is no session has no entries.
func (w *writing) state() (s pageState) {
	s.entries = []string{}
	s.files = snapshotOf(w.t, w.storage.(*dir.Storage).Path())
	st, err := w.storage.Stat(w.session.Name())
	if storage.IsMissing(err) {
		return s
	}
	require.NoError(w.t, err)
	s.content = w.content()
	s.token = st.Token
	_, err = w.session.Probe(w.t.Context())
	if err == nil {
		snap := w.snapshot()
		s.entries = shownEntries(w.t, snap)
		s.problems = len(problemsOf(w.t, snap))
	}
	return s
}

// refusals are the errors that pages show.
var refusals = []error{
	sessioncore.ErrInvalid, sessioncore.ErrNotFound, sessioncore.ErrExists, sessioncore.ErrNotSession, ErrNoDirectory, fs.ErrExist, unix.ENOTDIR,
	ErrOther,
}

// TestPages plays the pages of testdata/pages. With updateEnv it writes them anew, otherwise they must be as played.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("testdata/pages/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	updates := os.Getenv(updateEnv) != ""
	for _, name := range pages {
		page, err := txtar.ParseFile(name)
		require.NoError(t, err)
		for i, file := range page.Files {
			t.Run(filepath.Base(name)+"/"+file.Name, func(t *testing.T) {
				played := play(t, string(file.Data))
				if updates {
					page.Files[i].Data = []byte(played)
					return
				}
				require.Equal(t, string(file.Data), played)
			})
		}
		if updates {
			require.NoError(t, os.WriteFile(name, txtar.Format(page), 0o644))
		}
	}
}
