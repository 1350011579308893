package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/sent"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/writer"
)

// TestErrnoOf is the table of docs/design.md section 7 as far as it is about reading.
func TestErrnoOf(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("reading p/s.jsonl: %w", err) }
	for _, c := range []struct {
		err  error
		want syscall.Errno
	}{
		{nil, 0},
		{storage.ErrStale, syscall.ESTALE},
		{sessioncore.ErrNotFound, syscall.ENOENT},
		{sessioncore.ErrNotSession, syscall.ENOENT},
		{storage.ErrNotRegular, syscall.ENOENT},
		{storage.ErrBadName, syscall.ENOENT},
		{fs.ErrNotExist, syscall.ENOENT},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, syscall.ENOENT},
		{context.Canceled, syscall.EINTR},
		{context.DeadlineExceeded, syscall.EINTR},
		{syscall.EACCES, syscall.EACCES},
		{fs.ErrPermission, syscall.EACCES},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, syscall.EACCES},
		{syscall.ENOSPC, syscall.ENOSPC},
		{syscall.EDQUOT, syscall.EDQUOT},
		{syscall.EIO, syscall.EIO},
		{&os.SyscallError{Syscall: "pread64", Err: syscall.ENXIO}, syscall.ENXIO},
		{budget.ErrNoMemory, syscall.ENOMEM},
		{history.ErrQuery, syscall.EINVAL},
		{history.ErrTooBig, syscall.EFBIG},
		{history.ErrTooSlow, syscall.EIO},
		{history.ErrUnreadable, syscall.EIO},
		{search.ErrQuery, syscall.EINVAL},
		{staleIfGone(fs.ErrNotExist), syscall.ESTALE},
		{staleIfGone(sessioncore.ErrNotSession), syscall.ESTALE},
		{staleIfGone(syscall.EACCES), syscall.EACCES},
		{staleIfGone(io.ErrUnexpectedEOF), syscall.EIO},
		{errors.Join(errors.New("one"), sessioncore.ErrNotFound), syscall.ENOENT},
		{io.ErrUnexpectedEOF, syscall.EIO},
		{errors.New("who knows"), syscall.EIO},
	} {
		assert.Equal(t, c.want, errnoOf(c.err), "%v", c.err)
		if c.err != nil {
			assert.Equal(t, c.want, errnoOf(wrapped(c.err)), "%v, wrapped", c.err)
		}
	}
}

// TestFailLogs: an errno that does not say it all has its reason in the log; what is asked for all day
// has not.
func TestFailLogs(t *testing.T) {
	for _, c := range []struct {
		err    error
		logged string
	}{
		{sessioncore.ErrNotFound, ""},
		{context.Canceled, ""},
		{errors.New("who knows"), "level=ERROR"},
		{storage.ErrStale, "level=WARN"},
		{errReplaced, ""},
		{syscall.EACCES, "level=WARN"},
	} {
		var log bytes.Buffer
		d := &longDir{}
		d.view = &View{Log: slog.New(slog.NewTextHandler(&log, nil))}
		fusefs.NewNodeFS(d, &fusefs.Options{})
		assert.Equal(t, errnoOf(c.err), d.fail("read", c.err))
		assert.Contains(t, log.String(), c.logged)
		assert.Equal(t, c.logged == "", log.Len() == 0, "%s", log.String())
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
	{writer.ErrWaiting, syscall.EBUSY, "a session that is not on disk yet and is to be moved"},
	{writer.ErrNoDirectory, syscall.ENOENT, "a working directory that is not there"},
	{writer.ErrTooMany, syscall.EBUSY, "1,000 waiting sessions"},
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
	{sent.ErrUnsupported, syscall.EOPNOTSUPP, ""}, // no write makes a context
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
	{syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, "a file system that cannot exchange two names"},
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
	file := &ControlFile{of: "p/s.jsonl", name: "append"}
	file.view = view
	for _, c := range slices.Concat(writeErrors, otherWriteErrors) {
		assert.Equal(t, c.want, file.refused(c.err), "%v", c.err)
		assert.Equal(t, c.want, file.refused(&lineError{err: fmt.Errorf("p/s.jsonl: %w", c.err), line: 1}), "%v, wrapped", c.err)
		last, ok := view.refusals.get("p/s.jsonl")
		assert.True(t, ok)
		assert.Contains(t, last.line(), c.err.Error(), "last-error has the reason")
		assert.Equal(t, c.want == syscall.EIO, wayOut("p/s.jsonl", c.err) == unknownWay, "last-error has a way out of %v", c.err)
		if c.situation == "" {
			continue
		}
		row := ""
		for line := range strings.Lines(section) {
			if strings.HasPrefix(line, "| ") && strings.Contains(line, c.situation) {
				row = line
				break
			}
		}
		assert.Regexp(t, `\| `+errnoName(c.want)+`\b`, row, "docs/design.md section 7 on %q", c.situation)
	}
}

// TestSentinels: writeErrors has every exported sentinel error of sessioncore and of the packages below it, and no
// other.
func TestSentinels(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "errno_test.go", nil, 0)
	require.NoError(t, err)
	var named []string
	for _, d := range parsed.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR && g.Specs[0].(*ast.ValueSpec).Names[0].Name == "writeErrors" {
			ast.Inspect(g, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Err") && s.Sel.Name != "Errno" {
					named = append(named, s.X.(*ast.Ident).Name+"."+s.Sel.Name)
				}
				return true
			})
		}
	}
	var found []string
	require.NoError(t, filepath.WalkDir("../sessioncore", func(file string, item fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if item.IsDir() && item.Name() == "internal" {
			return filepath.SkipDir // for the packages around it alone
		}
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						found = append(found, parsed.Name.Name+"."+name.Name)
					}
				}
			}
		}
		return nil
	}))
	require.NotEmpty(t, found)
	assert.ElementsMatch(t, found, named)
}
