package agents

import (
	"context"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Format reads the sessions of an agent.
type Format interface {
	// IsSession reports whether a file is a session of the agent.
	IsSession(name string) bool
	// About returns the facts about a session outside its records. They are size bytes in obj. For
	// a list (listed) they have the title at both ends of obj; no other file is read completely.
	About(name string, obj storage.Object, size int64, listed bool) (About, error)
	// Converter returns a converter of a file's records to session lines. obj is the open file.
	Converter(about About, obj storage.Object) *Builder
}

// Joiner is a Format of sessions that may begin in other files.
type Joiner interface {
	// Join returns the object of a session's file: another one that closes obj, or obj. Its method
	// Joined returns how many bytes of its size are of other files.
	Join(name string, obj storage.Object) storage.Object
}

// Sharer is a Format with files that may have the records of several sessions.
type Sharer interface {
	// Part returns the object with the records that a session needs of a file: Inside.Part, or obj.
	Part(name string, obj storage.Object) storage.Object
}

// CalledFormat is a Format of sessions of subagents that may hang on records of the session that called them.
type CalledFormat interface {
	Format
	// InCaller returns those ids that are records of the session that called a subagent.
	InCaller(ctx context.Context, name string, ids map[string]bool) (found map[string]bool, err error)
}

// FactsFormat is a Format that offers less than About for a bill.
type FactsFormat interface {
	Format
	// FactsAbout returns the facts that a session's ids and usage depend on.
	FactsAbout(name string) About
}

// Orphans are the Files of a Store that show the sessions of subagents by themselves where the session
// is gone that called them.
type Orphans interface {
	storage.Files
	// Orphan returns the shown name of a subagent of such a session. name is the name of its
	// file (Agent.NameOf).
	Orphan(name string) (shown string, ok bool)
}

// Brief is an open session of Composed files with a first record that is known without the others.
type Brief interface {
	storage.Object
	// FirstRecord returns the first record. It has the facts of the session's header, but for the title
	// and the parent.
	FirstRecord() []byte
	// About returns the facts about the session that its records do not have.
	About() About
	// State returns the state of the session. The size is a guess, as the others are needed for it.
	State() storage.Stat
}

// Composed are the Files of a Store that compose each session of rows of a database, or of several files.
type Composed interface {
	storage.Files
	Composed()
}

// Billed are Composed files that have a form for a bill.
type Billed interface {
	Composed
	// Bill returns the same sessions. Their states by name have guessed sizes until they are read.
	Bill() storage.Files
}

// titleKeeper is a Format that knows titles that no record has; Beside returns a session's, or "".
type titleKeeper interface{ Beside(name string) string }

// cwdKeeper is titleKeeper for working directories.
type cwdKeeper interface{ CwdBeside(name string) string }

// Starter is a Format of sessions with the facts of the header in the first record, but for the
// title and the parent, unless the session moved.
type Starter interface {
	FactsFormat
	// MayMove reports whether one of both ends of the file may have another working directory. The tail
	// begins within a line.
	MayMove(head, tail []byte) bool
	// Named is About for a list, but need not tell the parent.
	Named(name string, obj storage.Object, size int64) (About, error)
}

// About has the facts about a session outside its records. It is comparable.
type About struct {
	ID     string // of the session
	Title  string
	Moved  string // the working directory that it moved to, or ""
	Parent string // path or id of the session that it was forked from, or ""
	Before string // identifies the files that are joined before it
	Side   bool   // it is a subagent's session
	Model  string // of answers without one, "" for the Provider's
	Chain  string // the first record of the subagent, in a file with other conversations
	Listed bool   // it is for a list, and its converter reads no other file
	Facts  bool   // its converter writes ids, parents, times, models and usages, but no contents
	Words  bool   // its converter leaves out usages and details of results, which no search looks at
}

// Usage has the tokens of an answer.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Total int64
	CacheWrite1h                                int64   // the part of CacheWrite that the cache keeps for an hour
	Fast                                        bool    // the answer is of the fast mode, which costs more
	Premium                                     float64 // requests that the provider bills
	// Ended is the answer's end in ms since the epoch, if it is on a later day (in UTC or local) than its begin, else 0.
	Ended int64
}

// AppendMembers appends the members of a usage, without the braces around them. Of the last four it leaves out those
// that are zero.
func (u Usage) AppendMembers(dst []byte) []byte {
	dst = append(dst, `"input":`...)
	dst = strconv.AppendInt(dst, u.Input, 10)
	dst = append(dst, `,"output":`...)
	dst = strconv.AppendInt(dst, u.Output, 10)
	dst = append(dst, `,"cacheRead":`...)
	dst = strconv.AppendInt(dst, u.CacheRead, 10)
	dst = append(dst, `,"cacheWrite":`...)
	dst = strconv.AppendInt(dst, u.CacheWrite, 10)
	dst = append(dst, `,"totalTokens":`...)
	dst = strconv.AppendInt(dst, u.Total, 10)
	if u.CacheWrite1h > 0 {
		dst = append(dst, `,"cacheWrite1h":`...)
		dst = strconv.AppendInt(dst, u.CacheWrite1h, 10)
	}
	if u.Fast {
		dst = append(dst, `,"speed":"fast"`...)
	}
	if u.Premium > 0 {
		dst = append(dst, `,"premiumRequests":`...)
		dst = rawjson.AppendNumber(dst, u.Premium)
	}
	if u.Ended > 0 {
		dst = append(dst, `,"ended":`...)
		dst = strconv.AppendInt(dst, u.Ended, 10)
	}
	return dst
}

// Count returns a number of tokens, 0 for a negative number, a fraction, or another value.
func Count(v rawjson.Value) int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
