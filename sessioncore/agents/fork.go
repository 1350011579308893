package agents

import (
	"fmt"
	"io"
	"path"
	"time"
)

// Forker is a Format whose agent goes on from a new file with the beginning of a session
// (docs/format.md, Forks of other agents).
type Forker interface {
	Format
	// Fork writes the records of a fork to out, and returns the place of its file. It reads only. The
	// error is a ForkError if the agent could not go on from such a file.
	Fork(request *ForkRequest, out io.Writer) (ForkPlace, error)
}

// ForkRequest describes a fork: a new session that ends at an entry of another one.
type ForkRequest struct {
	// Name is the name of the forked session in Store.Files.
	Name string
	// Path has the records of the entries from the root to the fork's last one.
	Path []EntryLines
	// ID is the id of the new session, a UUID.
	ID string
	// Title is the title of the new session, "" for none.
	Title string
	// Time is the time of the fork.
	Time time.Time
}

// Last returns the records of the fork's last entry.
func (r *ForkRequest) Last() EntryLines { return r.Path[len(r.Path)-1] }

// EntryLines has the lines of an entry's records.
type EntryLines struct {
	// File is the absolute path of their file, "" for the session's own.
	File string
	// Lines are the numbers of the lines, from 1.
	Lines []int64
}

// ForkPlace is the place of a fork's file in the agent's directory.
type ForkPlace struct {
	Dir  string // one of Agent.Dirs
	File string // its path below Dir
}

// Name returns the file's name in Store.Files.
func (p ForkPlace) Name(a *Agent) string { return a.NameOf(p.Dir, path.Clean(p.File)) }

// ForkError is the reason for which no fork can end at an entry.
type ForkError struct{ Reason string }

// Error implements error.
func (e *ForkError) Error() string { return "a new session cannot end here: " + e.Reason }

// NoFork returns a ForkError.
func NoFork(format string, args ...any) error { return &ForkError{fmt.Sprintf(format, args...)} }

// MaxForkedRecord is the size of the largest record in a fork, in bytes: half of the longest line
// that is read, so that the changed record stays readable.
const MaxForkedRecord = 32 << 20
