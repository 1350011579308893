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

// Columns returns the first line of a table of hits; with prompts it is that of a Touched.
func Columns(prompts bool) string {
	if prompts {
		return "time\tsession\twhat\tpath\tprompt\ttext\n"
	}
	return "time\tsession\twhat\tpath\ttext\n"
}

// maxUnread is how many files that could not be searched a table names.
const maxUnread = 100

// Table returns results.tsv: a line for each hit, and at the end what else has to be said.
func (r *Result) Table() []byte {
	out := []byte(Columns(r.prompts))
	for i := range r.Hits {
		out = r.Hits[i].AppendLine(out, r.prompts)
	}
	say := func(path, text string) { out = appendFields(out, r.prompts, "-", "-", "-", path, "-", text) }
	for i, f := range r.Unread {
		if i == maxUnread {
			say("-", fmt.Sprintf("another %d files could not be searched", len(r.Unread)-i))
			break
		}
		say(f.Path(), "could not be searched: "+f.Err.Error())
	}
	if r.More {
		advice := "add words, after: or cwd:"
		if r.prompts {
			advice = "look at a file or directory below"
		}
		say("-", fmt.Sprintf("there are more than these %d, which are in the sessions that were modified last: %s", len(r.Hits), advice))
	}
	return out
}

// timeForm is how the table shows times, in UTC.
const timeForm = "2006-01-02T15:04:05.000Z"

// AppendLine appends the hit's line in a table, escaped as labels are (docs/design.md section 2).
func (h *Hit) AppendLine(dst []byte, prompts bool) []byte {
	prompt := "-"
	if h.Prompt != "" {
		prompt = h.Directory() + "/" + h.BelowPrompt()
	}
	return appendFields(dst, prompts, h.Time.UTC().Format(timeForm), h.Session, h.What, h.Path(), prompt, h.Line)
}

func appendFields(dst []byte, prompts bool, at, session, what, path, prompt, text string) []byte {
	fields := []string{at, session, what, path, prompt, text}
	if !prompts {
		fields = slices.Delete(fields, 4, 5)
	}
	for _, field := range fields {
		dst = append(names.AppendLabelField(dst, field), '\t')
	}
	dst[len(dst)-1] = '\n'
	return dst
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
