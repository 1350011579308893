package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/sent"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// errnoOf is the one function that turns domain errors into errnos (docs/design.md section 7).
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, storage.ErrStale):
		return syscall.ESTALE
	case errors.Is(err, storage.ErrLocked), errors.Is(err, sessioncore.ErrBusy), errors.Is(err, storage.ErrTooMany),
		errors.Is(err, history.ErrBusy), errors.Is(err, search.ErrBusy), errors.Is(err, writer.ErrWaiting):
		return syscall.EBUSY
	case errors.Is(err, sessioncore.ErrInvalid), errors.Is(err, history.ErrQuery), errors.Is(err, search.ErrQuery):
		return syscall.EINVAL
	case errors.Is(err, sessioncore.ErrExists), errors.Is(err, fs.ErrExist):
		return syscall.EEXIST
	case errors.Is(err, sessioncore.ErrTooBig), errors.Is(err, history.ErrTooBig):
		return syscall.EFBIG
	case errors.Is(err, budget.ErrNoMemory):
		return syscall.ENOMEM
	case errors.Is(err, sent.ErrUnsupported), errors.Is(err, storage.ErrUnsupported):
		return syscall.EOPNOTSUPP
	case errors.Is(err, sessioncore.ErrReadOnly):
		return syscall.EROFS
	case errors.Is(err, sessioncore.ErrNotFound),
		errors.Is(err, writer.ErrNoDirectory),
		errors.Is(err, sessioncore.ErrNotSession),
		errors.Is(err, storage.ErrNotRegular),
		errors.Is(err, storage.ErrBadName),
		errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return syscall.EINTR
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, fs.ErrPermission):
		return syscall.EACCES
	}
	return syscall.EIO
}

// staleIfGone makes an error ESTALE that says that the backing file of an existing node is gone: the kernel then
// looks up the path again.
func staleIfGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sessioncore.ErrNotFound) ||
		errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) {
		return fmt.Errorf("%w: %w", storage.ErrStale, err)
	}
	return err
}

// fail returns the errno of an error, and logs the error unless the errno says it all.
func (v *View) fail(op, path string, err error) syscall.Errno {
	errno := errnoOf(err)
	switch errno {
	case 0, syscall.ENOENT, syscall.EINTR:
	case syscall.EIO:
		v.Log.Error("backing I/O failed", "op", op, "path", path, "err", err)
	default:
		v.Log.Warn("refused", "op", op, "path", path, "errno", errno, "err", err)
	}
	return errno
}
