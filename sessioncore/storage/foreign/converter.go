package foreign

import (
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Agent is how another agent keeps its sessions.
type Agent interface {
	// IsSession reports whether a file is a session of the agent.
	IsSession(name string) bool
	// About returns the facts about a session besides its records, of which obj has size bytes. For a
	// list (listed) these include the title by both ends of obj, and no other file is read as a whole.
	About(name string, obj storage.Object, size int64, listed bool) (About, error)
	// Converter returns a converter of a file's records to session lines. obj has the file open.
	Converter(about About, obj storage.Object) Converter
}

// Joiner is an Agent whose sessions may begin in other files.
type Joiner interface {
	// Join returns the object that shows a session's file: another one that closes obj, or obj itself. Its
	// method Joined tells how many bytes of its size are of other files.
	Join(name string, obj storage.Object) storage.Object
}

// FactsAgent is an Agent of which a bill needs less than About.
type FactsAgent interface {
	Agent
	// FactsAbout returns the facts about a session that its ids and its usage depend on.
	FactsAbout(name string) About
}

// Converter makes the lines of a session of the values of one file, one after the other.
type Converter interface {
	// Add takes the next value of the file, an object, and the number of its line, from 1. It appends to out what no later
	// value can change. v is valid until Add returns.
	Add(out []byte, v rawjson.Value, line int64) []byte
	// Tail appends what is known so far and may still be changed by later values.
	Tail(out []byte) []byte
}

// A RecordConverter is a Converter that needs the members of each value, and those of one of them.
type RecordConverter interface {
	Converter
	// Inner returns the key of that one.
	Inner() string
	// AddRecord is Add for the value v with these members. They are valid until AddRecord returns.
	AddRecord(out []byte, v rawjson.Value, members, inner Object, line int64) []byte
}

// A Titler is a Converter that finds the title among the records.
type Titler interface {
	Converter
	// Title returns the title, as far as it is known. Where the header has another one, Again returns a Converter that
	// writes this.
	Title() string
}

// A Rereader is a Converter that can learn from a value that what it made of those before was wrong.
type Rereader interface {
	Converter
	// Again returns what must convert the file once more, from its beginning; nil if all is right.
	Again() Converter
}

// About is what is known of a session besides its records. It is comparable.
type About struct {
	ID     string // of the session
	Title  string
	Moved  string // the working directory to which it moved, "" if it did not
	Parent string // path or id of the session that it was forked from, "" for none
	Before string // identifies the files that are joined before it
	Side   bool   // it is a subagent's
	Chain  string // the first record of the subagent that it is, where the file has other conversations too
	Listed bool   // it is for a list, and its converter reads no other file
	Facts  bool   // its converter writes ids, parents, times, models and usages, and leaves contents empty
}

// AppendMembers appends the members of a header that an About gives.
func (a *About) AppendMembers(dst []byte) []byte {
	if a.Title != "" {
		dst = rawjson.AppendQuoted(append(dst, `,"title":`...), a.Title)
	}
	if a.Parent != "" {
		dst = rawjson.AppendQuoted(append(dst, `,"parentSession":`...), a.Parent)
	}
	return dst
}

// Usage has the tokens of an answer.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Total int64
	CacheWrite1h                                int64   // the part of CacheWrite that the cache keeps for an hour
	Fast                                        bool    // the model answered in fast mode, which costs more
	Premium                                     float64 // requests that the provider bills
	Ended                                       int64   // time in ms of an answer that ended on a later day than it began, in UTC; else 0
}

// AppendTo appends the member usage of a message.
func (u Usage) AppendTo(dst []byte) []byte {
	return append(u.AppendMembers(append(dst, `,"usage":{`...)), '}')
}

// AppendMembers appends the members of a usage.
func (u Usage) AppendMembers(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `"input":`...), u.Input, 10)
	dst = strconv.AppendInt(append(dst, `,"output":`...), u.Output, 10)
	dst = strconv.AppendInt(append(dst, `,"cacheRead":`...), u.CacheRead, 10)
	dst = strconv.AppendInt(append(dst, `,"cacheWrite":`...), u.CacheWrite, 10)
	dst = strconv.AppendInt(append(dst, `,"totalTokens":`...), u.Total, 10)
	if u.CacheWrite1h > 0 {
		dst = strconv.AppendInt(append(dst, `,"cacheWrite1h":`...), u.CacheWrite1h, 10)
	}
	if u.Fast {
		dst = append(dst, `,"speed":"fast"`...)
	}
	if u.Premium > 0 {
		dst = rawjson.AppendNumber(append(dst, `,"premiumRequests":`...), u.Premium)
	}
	if u.Ended > 0 {
		dst = strconv.AppendInt(append(dst, `,"ended":`...), u.Ended, 10)
	}
	return dst
}

// Count returns a number of tokens, 0 for what is none.
func Count(v rawjson.Value) int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
