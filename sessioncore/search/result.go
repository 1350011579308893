package search

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Hit is an entry that was found, or the title in a session's header.
type Hit struct {
	Tree    string // where the sessions are in a mount
	File    string // of the session, in the storage
	Session string // its display name
	Entry   string // the name of the entry's file in entries/, without the suffix; "" for the title
	What    string // the entry's path label, or "title"
	Time    time.Time
	Line    string // of its text, around what was found
	Prompt  string // Entry of the user's prompt before it, if that was asked for and there is one
}

// TitleLabel is What of a hit that is a session's title.
const TitleLabel = "title"

// Found is what was found in one session file.
type Found struct {
	File string
	Hits []Hit // newest first; at most one more than the limit
	Err  error // why the file could not be searched

	tree   string
	token  storage.Token
	readAt int64 // when that was its token, ns since the epoch
}

// Path returns the path of the session file in the mount.
func (f *Found) Path() string { return f.tree + "/" + f.File }

// Result is what a search found. It does not change.
type Result struct {
	Hits []Hit // newest first, at most the limit
	More bool  // there are more; then the hits are those in the sessions that were modified last
	// Unread are the files that could not be searched, without hits.
	Unread []*Found
	// prompts says that the table has a column for the prompts.
	prompts bool
	// Modified is when the newest file was modified, ns since the epoch.
	Modified int64
}

// newResult puts together what was found in files, of which the first were modified last.
func newResult(found []*Found, limit int) *Result {
	r := &Result{}
	for _, f := range found {
		if f.Err != nil {
			r.Unread = append(r.Unread, f)
		}
		if left := limit - len(r.Hits); len(f.Hits) > left {
			r.Hits, r.More = append(r.Hits, f.Hits[:left]...), true
			break
		}
		r.Hits = append(r.Hits, f.Hits...)
	}
	slices.SortStableFunc(r.Hits, func(a, b Hit) int { return b.Time.Compare(a.Time) })
	return r
}

// Columns is the first line of a table of hits.
const Columns = "time\tsession\twhat\tpath\ttext\n"

// TouchedColumns is the first line of a table of the hits of a Touched.
const TouchedColumns = "time\tsession\twhat\tpath\tprompt\ttext\n"

// maxUnread is how many files that could not be searched a table names.
const maxUnread = 100

// Table returns results.tsv: a line for each hit, and at the end what else has to be said.
func (r *Result) Table() []byte {
	columns, line, gap := Columns, (*Hit).AppendLine, ""
	if r.prompts {
		columns, line, gap = TouchedColumns, (*Hit).AppendTouchedLine, "-\t"
	}
	out := []byte(columns)
	for i := range r.Hits {
		out = line(&r.Hits[i], out)
	}
	for i, f := range r.Unread {
		if i == maxUnread {
			out = fmt.Appendf(out, "-\t-\t-\t-\t%sanother %d files could not be searched\n", gap, len(r.Unread)-i)
			break
		}
		out = append(out, "-\t-\t-\t"...)
		out = names.AppendLabelField(out, f.Path())
		out = append(out, "\t"+gap+"could not be searched: "...)
		out = append(names.AppendLabelField(out, f.Err.Error()), '\n')
	}
	if r.More {
		out = fmt.Appendf(out, "-\t-\t-\t-\t%sthere are more than these %d, which are in the sessions that were modified last: %s\n", gap, len(r.Hits), r.advice())
	}
	return out
}

// advice says how fewer are found.
func (r *Result) advice() string {
	if r.prompts {
		return "look at a file or directory below"
	}
	return "add words, after: or cwd:"
}

// timeForm is how the table shows times, in UTC.
const timeForm = "2006-01-02T15:04:05.000Z"

// AppendLine appends the hit's line in the table, escaped as labels are (docs/design.md section 2).
func (h *Hit) AppendLine(dst []byte) []byte { return h.appendFields(dst, h.Line) }

// AppendTouchedLine is AppendLine for the table of a Touched.
func (h *Hit) AppendTouchedLine(dst []byte) []byte {
	prompt := "-"
	if h.Prompt != "" {
		prompt = h.Directory() + "/" + h.BelowPrompt()
	}
	return h.appendFields(dst, prompt, h.Line)
}

func (h *Hit) appendFields(dst []byte, last ...string) []byte {
	dst = h.Time.UTC().AppendFormat(dst, timeForm)
	for _, field := range append([]string{h.Session, h.What, h.Path()}, last...) {
		dst = append(dst, '\t')
		dst = names.AppendLabelField(dst, field)
	}
	return append(dst, '\n')
}

// Directory returns the path of the session's directory in the mount.
func (h *Hit) Directory() string {
	return h.Tree + "/" + strings.TrimSuffix(h.File, sessioncore.FileEnding)
}

// Path returns the path of the hit's file in the mount.
func (h *Hit) Path() string { return h.Directory() + "/" + h.Below() }

// Below returns the path of the hit's file in its session's directory.
func (h *Hit) Below() string {
	if h.Entry == "" {
		return "title"
	}
	return entryPath(h.Entry)
}

// BelowPrompt is Below for the prompt, which there must be.
func (h *Hit) BelowPrompt() string { return entryPath(h.Prompt) }

func entryPath(name string) string { return "entries/" + name + ".json" }
