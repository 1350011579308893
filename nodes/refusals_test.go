package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/writer"
)

// TestErrnoOf is the table of docs/design.md section 7 as far as it is about reading. TestWriteErrors has what is the same.
func TestErrnoOf(t *testing.T) {
	open := func(err error) error { return &fs.PathError{Op: "open", Path: "x", Err: err} }
	assert.Zero(t, Errno(nil))
	for want, errs := range map[syscall.Errno][]error{
		syscall.ENOENT: {sessioncore.ErrNotFound, sessioncore.ErrNotSession, storage.ErrNotRegular, fs.ErrNotExist, open(syscall.ENOENT),
			errors.Join(errors.New("one"), sessioncore.ErrNotFound)},
		syscall.EINTR:  {context.Canceled, context.DeadlineExceeded},
		syscall.EACCES: {syscall.EACCES, fs.ErrPermission, open(syscall.EACCES), staleIfGone(syscall.EACCES)},
		syscall.ENXIO:  {&os.SyscallError{Syscall: "pread64", Err: syscall.ENXIO}},
		syscall.ESTALE: {staleIfGone(fs.ErrNotExist), staleIfGone(sessioncore.ErrNotSession)},
		syscall.EIO:    {io.ErrUnexpectedEOF, staleIfGone(io.ErrUnexpectedEOF)},
	} {
		for _, err := range errs {
			assert.Equal(t, want, Errno(err), "%v", err)
			assert.Equal(t, want, Errno(fmt.Errorf("reading p/s.jsonl: %w", err)), "%v, wrapped", err)
		}
	}
}

// TestFailLogs: an errno that does not say it all has its reason in the log; what is asked for all day
// has not.
func TestFailLogs(t *testing.T) {
	for err, logged := range map[error]string{
		sessioncore.ErrNotFound: "", context.Canceled: "", errReplaced: "",
		errors.New("who knows"): "level=ERROR", storage.ErrStale: "level=WARN", syscall.EACCES: "level=WARN",
	} {
		var log bytes.Buffer
		view := &View{Log: slog.New(slog.NewTextHandler(&log, nil))}
		root := NewRootDir(view, nil, func() []Name { return nil })
		assert.Equal(t, Errno(err), Fail(root, "", "read", err))
		assert.Contains(t, log.String(), logged)
		assert.Equal(t, logged == "", log.Len() == 0, "%s", log.String())
	}
}

// writeErrors are the sentinel errors of the packages below, with the errno of a write that fails with one and what
// docs/design.md section 7 says of it; "" where no write fails with it.
var writeErrors = []struct {
	err       error
	want      syscall.Errno
	situation string
}{
	{sessioncore.ErrInvalid, syscall.EINVAL, "a missing or wrong field"},
	{sessioncore.ErrNotFound, syscall.ENOENT, "that is not in the session"},
	{sessioncore.ErrExists, syscall.EEXIST, "an id that exists already"},
	{sessioncore.ErrBusy, syscall.EBUSY, "a live client"},
	{storage.ErrLocked, syscall.EBUSY, "a lock not obtained within 500 ms"},
	{writer.ErrNotOwn, syscall.EPERM, "a new session among those of others"},
	{writer.ErrNoDirectory, syscall.ENOENT, "a working directory that is not there"},
	{sessioncore.ErrTooBig, syscall.EFBIG, "a line over 64 MiB"},
	{budget.ErrNoMemory, syscall.ENOMEM, "more memory than"},
	{sessioncore.ErrReadOnly, syscall.EROFS, "a read-only mount"},
	{storage.ErrStale, syscall.ESTALE, "the backing file went away"},
	{sessioncore.ErrNotSession, syscall.ESTALE, "the backing file went away"},
	{storage.ErrNotRegular, syscall.ESTALE, "the backing file went away"},

	{storage.ErrBadName, syscall.ENOENT, ""}, // names come from the storage or are made here
	{storage.ErrUnsupported, syscall.EOPNOTSUPP, "a session in a database that is to be moved"},
	{history.ErrQuery, syscall.EINVAL, ""}, // the history is not written
	{history.ErrTooBig, syscall.EFBIG, ""},
	{history.ErrTooSlow, syscall.EIO, ""},
	{history.ErrUnreadable, syscall.EIO, ""},
	{search.ErrQuery, syscall.EINVAL, ""},
	{postgres.ErrUnreachable, syscall.EIO, ""},
	{postgres.ErrPassword, syscall.EIO, ""}, // the command ends
	{writer.ErrOther, syscall.EIO, ""},      // sessionfs import says so
}

// otherWriteErrors are errors of the model that are no sentinels, and of the system.
var otherWriteErrors = []struct {
	err       error
	want      syscall.Errno
	situation string
}{
	{&writer.FieldError{Want: "a known type", Got: "x"}, syscall.EINVAL, "an unknown type"},
	{errManyLines, syscall.EINVAL, "two lines for a title"},
	{errUnfinished, syscall.EINVAL, "not JSON"},
	{layout.ErrNoReference, syscall.EINVAL, "a leaf target that names no entry"},
	{errLineTooLong, syscall.EFBIG, "a line over 64 MiB"},
	{&clients.LiveError{}, syscall.EBUSY, "a live client"},
	{fs.ErrNotExist, syscall.ESTALE, "the backing file went away"},
	{syscall.ENAMETOOLONG, syscall.ENAMETOOLONG, "a working directory whose sessions could not be written"},
	{fs.ErrExist, syscall.EEXIST, "a name that a moved session would take"},
	{syscall.ENOTDIR, syscall.ENOTDIR, "a working directory that is none"},
	{syscall.EXDEV, syscall.EXDEV, "another file system"},
	{syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, ""},
	{syscall.ENOSPC, syscall.ENOSPC, ""},
	{syscall.EDQUOT, syscall.EDQUOT, ""},
	{syscall.EIO, syscall.EIO, ""},
	{errors.New("who knows"), syscall.EIO, "a defect of ours"},
}

// errnoName is the name of an errno in the documents. Linux has two for one.
func errnoName(errno syscall.Errno) string {
	if errno == unix.EOPNOTSUPP {
		return "EOPNOTSUPP"
	}
	return unix.ErrnoName(errno)
}

// TestWriteErrors: what a write to a control file fails with, and that docs/design.md says so.
func TestWriteErrors(t *testing.T) {
	text, err := os.ReadFile("../docs/design.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## 7. ")
	section, _, _ = strings.Cut(section, "\n## ")
	view := &View{Log: slog.New(slog.DiscardHandler)}
	file := &ControlFile{sessionName: "p/s.jsonl", name: "append"}
	root := NewDirectory(view)
	file.in = &root
	for _, c := range slices.Concat(writeErrors, otherWriteErrors) {
		assert.Equal(t, c.want, file.Refused(c.err), "%v", c.err)
		wrapped := &lineError{err: fmt.Errorf("p/s.jsonl: %w", c.err), line: 1}
		assert.Equal(t, c.want, file.Refused(wrapped), "%v, wrapped", c.err)
		last, _ := view.refusals.get("p/s.jsonl")
		assert.Contains(t, last, c.err.Error(), "last-error has the reason")
		assert.Equal(t, 1, strings.Count(last, c.want.Error()), "last-error says the errno once: %s", last)
		isUnknown := hintFor("p/s.jsonl", c.err) == "; "+unknownHint
		assert.Equal(t, c.want == syscall.EIO, isUnknown, "the hint of %v", c.err)
		if c.situation != "" {
			assert.Regexp(t, `(?m)^\| .*`+c.situation+`.*\| `+errnoName(c.want)+`\b`, section, "docs/design.md section 7")
		}
	}
}

// TestSentinels: writeErrors has every exported sentinel error of sessioncore and of the packages below it, and no
// other.
func TestSentinels(t *testing.T) {
	this, err := os.ReadFile("refusals_test.go")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(this), "\nvar writeErrors = ")
	table, _, _ = strings.Cut(table, "\n}\n")
	named := regexp.MustCompile(`\w+\.Err[A-Z]\w*`).FindAllString(table, -1)
	declared := regexp.MustCompile(`(?m)^(?:var |\t)(Err[A-Z]\w*) +=`)
	packageName := regexp.MustCompile(`(?m)^package (\w+)`)
	var found []string
	require.NoError(t, filepath.WalkDir("../sessioncore", func(file string, item fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case item.IsDir() && item.Name() == "internal":
			return filepath.SkipDir // for the packages around it alone
		case item.IsDir() && item.Name() == "sqlite":
			return filepath.SkipDir // which this package is built without
		case filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			found = append(found, string(packageName.FindSubmatch(text)[1])+"."+string(m[1]))
		}
		return err
	}))
	require.NotEmpty(t, found)
	assert.ElementsMatch(t, found, named)
}

// panics is an error whose text panics.
type panics chan struct{}

func (panics) Unwrap() error { return sessioncore.ErrBusy }

func (p panics) Error() string {
	close(p)
	panic("a bug")
}

// TestPanicBesides: a panic in the background, as in the text of a refusal for a busy session, does not end the process.
func TestPanicBesides(t *testing.T) {
	v := &View{Log: slog.New(slog.DiscardHandler)}
	panicking := make(panics)
	require.Equal(t, syscall.EBUSY, v.refuse("s", "append", "append", panicking))
	<-panicking
	time.Sleep(20 * time.Millisecond) // for the panic to end this process
}

// TestRefusalsAreBounded: after a thousand sessions with a reason all are dropped: users read the last one.
func TestRefusalsAreBounded(t *testing.T) {
	var r refusals
	text := func(session string) string {
		text, _ := r.get(session)
		return text
	}
	for n := range maxRefusals {
		r.note(fmt.Sprint(n), refusal{text: func() string { return "why" }})
	}
	require.Equal(t, "why", text("0"))
	r.note("one more", refusal{text: func() string { return "why" }})
	require.Empty(t, text("0"))
	require.Equal(t, "why", text("one more"))
}

// TestForgets: a success clears the reason about its own subject, and a write that of its session.
func TestForgets(t *testing.T) {
	var r refusals
	text := func() string { text, _ := r.get("s"); return text }
	for subject, kept := range map[string]bool{"append": true, "leaf": false, "": false} {
		r.note("s", refusal{subject: "leaf", text: func() string { return "why" }})
		r.forget("other", subject)
		require.Equal(t, "why", text())
		r.forget("s", subject)
		require.Equal(t, kept, text() != "", "%q", subject)
	}
}

// TestNamesOfPrograms: a look-up that fails is a reason to tell, but not of names for which programs look in every
// directory, nor where failed look-ups are usual.
func TestNamesOfPrograms(t *testing.T) {
	for _, c := range []struct {
		dir, name  string
		isRecorded bool
	}{
		{dir: "by-id", name: "x", isRecorded: true},
		{dir: "by-id", name: ".git"},
		{dir: "by-id", name: "..."},
		{dir: "", name: "x"},
	} {
		view := &View{Log: slog.New(slog.DiscardHandler)}
		links := &LinksDir{Directory: NewDirectory(view), refusalName: c.dir}
		require.Equal(t, syscall.ENOENT, NoName(links, c.name, sessioncore.ErrNotFound))
		last, _ := view.refusals.get(outside)
		require.Equal(t, c.isRecorded, last != "", "%s/%s: %s", c.dir, c.name, last)
	}
}

// TestReasonsAreShort: last-error is one line of a bounded length, whatever a reason quotes.
func TestReasonsAreShort(t *testing.T) {
	view := &View{Log: slog.New(slog.DiscardHandler)}
	_ = view.refuse("s", "append", "append", errors.New(strings.Repeat("a\n\x1b", 1<<20)))
	last, _ := view.refusals.get("s")
	require.LessOrEqual(t, len(last), 5*maxReason)
	require.Equal(t, 1, strings.Count(last, "\n"))
	require.NotContains(t, last, "\x1b")
}

// TestForeignHints: only sessions of an agent that goes on from forks are said to have one.
func TestForeignHints(t *testing.T) {
	require.NotContains(t, hintFor("s", ErrForeign), "fork")
	require.Contains(t, hintFor("s", ErrForkable), "to fork")
	require.ErrorIs(t, ErrForkable, ErrForeign)
	require.Equal(t, syscall.EROFS, Errno(ErrForkable))
}
