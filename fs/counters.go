//go:build linux

package fs

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Counters tell what a mount has done and holds.
type Counters struct {
	Since    time.Time `json:"since"`    // when it was mounted
	Last     time.Time `json:"last"`     // the last request
	Requests int64     `json:"requests"` // for which programs waited
	Errors   int64     `json:"errors"`   // of them that were refused or failed; what is not there is no error
	Running  int64     `json:"running"`  // requests under way
	Open     int64     `json:"open"`     // files and directories that programs have open
	Sessions int       `json:"sessions"` // whose index is kept
	New      int       `json:"new"`      // new sessions that are not on disk yet
	Held     int64     `json:"held"`     // bytes for open files, and for new sessions
	Memory   int64     `json:"memory"`   // bytes of the process that are in memory
	Shared   bool      `json:"shared"`   // other machines may write to the sessions
}

// Counters returns the counters as they are now. It waits for nothing that a request may hold for long.
func (s *Server) Counters() Counters {
	c := s.counts.read()
	c.Since = s.since
	c.Sessions, c.New, c.Held = s.tree.store.Indexed(), len(s.tree.waiting.Names()), s.tree.view.Memory.Held()
	c.Memory, c.Shared = residentMemory(), s.tree.shared
	return c
}

// Idle returns how long no program has asked for anything, 0 while one has something open. The kernel answers some
// requests itself for a second.
func (s *Server) Idle() time.Duration {
	now := s.counts.read()
	if now.Running > 0 || now.Open > 0 {
		return 0
	}
	last := now.Last
	if last.Before(s.since) {
		last = s.since
	}
	return time.Since(last)
}

// Save puts the new sessions on disk that are in memory and were written to, as an fsync of new-session does.
func (s *Server) Save(ctx context.Context) error { return s.tree.view.Writer.SyncAll(ctx) }

// counts are the counters of requests.
type counts struct {
	requests, errors, running, open atomic.Int64
	last                            atomic.Int64 // in nanoseconds since 1970
}

func (c *counts) read() Counters {
	n := Counters{Requests: c.requests.Load(), Errors: c.errors.Load(), Running: c.running.Load(), Open: c.open.Load()}
	if last := c.last.Load(); last != 0 {
		n.Last = time.Unix(0, last)
	}
	return n
}

// request counts a request that begins; the function that it returns counts its end.
func (c *counts) request(status *fuse.Status) func() {
	c.requests.Add(1)
	c.running.Add(1)
	c.last.Store(time.Now().UnixNano())
	*status = fuse.EIO // what a panic is answered with
	return func() {
		c.running.Add(-1)
		switch *status { // for somebody to look at is neither a name that is not there, nor a caller who did not wait
		case fuse.OK, fuse.ENOENT, fuse.EINTR:
		default:
			c.errors.Add(1)
		}
	}
}

// residentMemory is how much of this process is in memory, 0 if that cannot be told.
func residentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
