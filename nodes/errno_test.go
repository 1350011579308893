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
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/storage"
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
		{history.ErrQuery, syscall.EINVAL},
		{history.ErrTooBig, syscall.EFBIG},
		{history.ErrTooSlow, syscall.EIO},
		{history.ErrUnreadable, syscall.EIO},
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
		{syscall.EACCES, "level=WARN"},
	} {
		var log bytes.Buffer
		v := &View{Log: slog.New(slog.NewTextHandler(&log, nil))}
		assert.Equal(t, errnoOf(c.err), v.fail("read", "p/s", c.err))
		assert.Contains(t, log.String(), c.logged)
		assert.Equal(t, c.logged == "", log.Len() == 0, "%s", log.String())
	}
}
