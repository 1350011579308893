package dir

import (
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Writers reports whether a process has a file open for writing at this moment, as a live client does
// (docs/design.md section 4). Callers must hold Lock(name), so that a writer that takes the lock is not found in the middle
// of its work. It asks for a read lease, which the kernel refuses exactly when the file is open for
// writing anywhere on this machine (docs/format.md, What a running client has open). Without leases, or without the
// permission for one, the state is unknown.
//
// The lease is given up at once. A process that opens the file for writing within these microseconds waits as long
// (with O_NONBLOCK it gets EAGAIN), and we receive SIGIO, which the Go runtime ignores. This process keeps no session
// open for writing except within Append and Replace.
//
// The error is that of Open, or ErrLocked if another program's lease forbids even reading.
func (s *Storage) Writers(name string) (storage.WriterState, error) {
	p, err := s.openParent(name)
	if err != nil {
		return storage.WritersUnknown, err
	}
	defer p.close()
	fd, _, err := p.open(unix.O_RDONLY)
	if err != nil {
		return storage.WritersUnknown, err
	}
	defer unix.Close(fd)
	return lease(fd), nil
}
