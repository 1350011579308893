package agents

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Forker is a Format of an agent that goes on from a new file with the beginning of a session
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
	// RawControls and InnerKey are as in the Builder of the session. The fork has the characters escaped.
	RawControls bool
	InnerKey    string
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
	// Beside are files that the agent expects beside it, by their paths below Dir. They are made first.
	Beside map[string]Content
}

// Content writes the content of a file.
type Content func(out io.Writer) error

// TextContent returns a content that is a text.
func TextContent(text string) Content {
	return func(out io.Writer) error {
		_, err := io.WriteString(out, text)
		return err
	}
}

// CopyOf returns the content of a file of the agent.
func CopyOf(files storage.Files, name string) Content {
	return func(out io.Writer) error {
		obj, err := files.Open(name)
		if err != nil {
			return err
		}
		defer obj.Close()
		st, err := obj.Stat()
		if err != nil {
			return err
		}
		_, err = io.Copy(out, io.NewSectionReader(obj, 0, st.Size))
		return err
	}
}

// Name returns the file's name in Store.Files.
func (p ForkPlace) Name(a *Agent) string { return a.NameOf(p.Dir, path.Clean(p.File)) }

// ForkError is the reason why no fork can end at an entry.
type ForkError struct{ Reason string }

// Error implements error.
func (e *ForkError) Error() string { return "a new session cannot end here: " + e.Reason }

// NoFork returns a ForkError.
func NoFork(format string, args ...any) error { return &ForkError{fmt.Sprintf(format, args...)} }

// MaxForkedRecord is the size of the largest record in a fork, in bytes: half of the longest line
// that is read, so that the changed record stays readable.
const MaxForkedRecord = 32 << 20

// end returns the last line of the entries on the path that are in the file of the last one. A result
// may be recorded before the one that it follows.
func (r *ForkRequest) end() int64 {
	end := int64(0)
	for _, entry := range r.Path {
		isInSameFile := entry.File == r.Last().File
		if isInSameFile {
			end = max(end, slices.Max(entry.Lines))
		}
	}
	return end
}

// CopyRecords writes the records of a file up to the last line of a fork, a line each. change returns the text to write;
// its record is valid during the call. The error is a ForkError for a damaged line, or one that is too long. It is
// storage.ErrStale if the file ends before that line, or has no record in it.
func CopyRecords(
	obj storage.Object, request *ForkRequest, out io.Writer, change func(record *Record) (rawjson.Value, error),
) error {
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	end := request.end()
	last := int64(0) // the line of the record written last
	var members recordMembers
	copyUnit := func(u *jsonl.Unit) error {
		if u.Line > end {
			return jsonl.ErrStop
		}
		err := checkForkLine(u)
		if err != nil {
			return err
		}
		record := members.readUnit(u, request.InnerKey)
		text, err := change(&record)
		if err != nil {
			return err
		}
		last = u.Line
		_, err = out.Write(text)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, "\n")
		return err
	}
	records := jsonl.Records{RawControls: request.RawControls, Inner: request.InnerKey}
	start := jsonl.Position{}
	_, err = records.Load(context.Background(), obj, start, st.Size, copyUnit)
	if err != nil && !errors.Is(err, jsonl.ErrStop) {
		return err
	}
	if last != end {
		return fmt.Errorf("%w: line %d is not there any more", storage.ErrStale, end)
	}
	return nil
}

// checkForkLine returns an error for a line that a fork cannot have.
func checkForkLine(u *jsonl.Unit) error {
	if u.Kind != jsonl.ObjectUnit || u.Trailing > 0 {
		return NoFork("line %d is damaged", u.Line)
	}
	if u.Size > MaxForkedRecord {
		return NoFork("line %d has %d bytes, at most %d can be copied", u.Line, u.Size, MaxForkedRecord)
	}
	return nil
}

// NewUUID returns a random UUID (RFC 9562, version 4), a form that all agents accept for ids.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuidOf(b)
}

// HashedUUID returns a UUID in the form of NewUUID that is the same for the same words. They have no NUL bytes.
func HashedUUID(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return uuidOf([16]byte(sum[:16]))
}

// uuidOf returns 16 bytes as a UUID, but for the bits in the places of the version and of the variant.
func uuidOf(b [16]byte) string {
	b[6] = b[6]&0x0F | 0x40 // version 4
	b[8] = b[8]&0x3F | 0x80 // the variant of RFC 9562
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
