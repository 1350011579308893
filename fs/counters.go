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

// Counters tell what a mount holds.
type Counters struct {
	Since    time.Time `json:"since"`    // when it was mounted
	Last     time.Time `json:"last"`     // when a program last looked for something
	Open     int64     `json:"open"`     // files and directories that programs have open
	Sessions int       `json:"sessions"` // whose index is kept
	Held     int64     `json:"held"`     // bytes for open files and in caches
	Idle     int64     `json:"idle"`     // bytes of Held in caches
	Memory   int64     `json:"memory"`   // bytes of the process that are in memory
	Files    int       `json:"files"`    // descriptors of the process
	// Temporary is how many bytes are in files without a name in TMPDIR.
	Temporary int64  `json:"temporary"`
	Shared    bool   `json:"shared"`         // other machines may write to the sessions
	Full      string `json:"full,omitempty"` // why a program was refused memory, while there is none for it
}

// Counters returns the counters as they are now. It waits for nothing that a request may hold for long.
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

// Idle returns how long no program has looked for anything, 0 while one has something open. The kernel answers some
// look-ups itself for a second.
func (s *Server) Idle() time.Duration {
	if s.door.Open() > 0 {
		return 0
	}
	return time.Since(s.door.Last())
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

// openDescriptors is how many descriptors this process has, 0 if that cannot be told.
func openDescriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return max(0, len(open)-1) // without that of the directory
}
