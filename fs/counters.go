//go:build linux

package fs

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sessionfs/sessioncore/spill"
)

// Counters are the numbers of a mount.
type Counters struct {
	Since    time.Time `json:"since"`    // time of the mount
	Last     time.Time `json:"last"`     // time of the last request of a program
	Open     int64     `json:"open"`     // files and directories that programs have open
	Sessions int       `json:"sessions"` // sessions with a cached index
	Held     int64     `json:"held"`     // bytes for open files and in caches
	Idle     int64     `json:"idle"`     // bytes of Held in caches
	Memory   int64     `json:"memory"`   // bytes of the process that are in memory
	Files    int       `json:"files"`    // descriptors of the process
	// Temporary is the size in bytes of the files without a name in TMPDIR.
	Temporary int64  `json:"temporary"`
	Shared    bool   `json:"shared"`         // other machines may write to the sessions
	Full      string `json:"full,omitempty"` // the reason for refusing memory, while there is none
}

// Counters returns the current counters. It waits for nothing that a request may hold for long.
func (s *Server) Counters() Counters {
	c := Counters{Since: s.since, Last: s.door.Last(), Open: s.door.Open()}
	for _, p := range slices.Concat(s.tree.parts, []*place{s.tree.place}) {
		c.Sessions += p.store.Indexed()
	}
	memory := s.tree.view.Memory
	c.Held, c.Idle, c.Full = memory.Held(), memory.Idle(), memory.Full()
	c.Memory, c.Files, c.Temporary, c.Shared = residentMemory(), openDescriptors(), spill.InUse(), s.tree.shared
	return c
}

// Idle returns the time since the last request of a program, 0 while one has a file open. The
// kernel answers some lookups itself for a second.
func (s *Server) Idle() time.Duration {
	if s.door.Open() > 0 {
		return 0
	}
	return time.Since(s.door.Last())
}

// residentMemory returns the bytes of this process in memory, 0 if they are unknown.
func residentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// openDescriptors returns the number of descriptors of this process, 0 if it is unknown.
func openDescriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return max(0, len(open)-1) // without that of the directory
}
