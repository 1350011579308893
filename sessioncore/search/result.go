package search

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Hit is a matching entry, or the title in a session's header.
type Hit struct {
	*FileHits        // of the session
	Role      string // of the entry's message, in camelCase; "" for other entries
	Entry     string // the name of the entry's file in entries/, without the suffix; "" for the title
	What      string // the entry's path label, or "title"
	Time      time.Time
	Line      string // of its text, around the match
	Prompt    string // the first line of the user's prompt before it, if any and it is no prompt
	Copies    int    // number of forks of the session that have it, too

	calls []string // of a Touched: each tool with a file, which Line has shortened
}

// TitleLabel is What of a hit in a session's title.
const TitleLabel = "title"

// FileHits is the result of searching one session file.
type FileHits struct {
	Tree    string // directory of the sessions in a mount
	File    string // in the storage
	Session string // its display name, if there are hits
	Title   string // the display name before it is cut
	ID      string // of the session, if there are hits
	Hits    []Hit  // newest first; at most one more than the limit
	Count   int    // of the hits, if only that was requested
	Err     error  // the reason why the file could not be searched

	counted []uint64  // the copyKey of each hit, if only their number was requested; then Hits are empty
	start   time.Time // of the session
	isFork  bool
	token   storage.Token
	readAt  int64 // when token was current, ns since the epoch
}

// Path returns the path of the session file in the mount.
func (f *FileHits) Path() string { return f.Tree + "/" + f.File }

// Directory returns the path of the session's directory in the mount.
func (f *FileHits) Directory() string {
	return f.Tree + "/" + strings.TrimSuffix(f.File, sessioncore.FileEnding)
}

// Result is the immutable result of a search.
type Result struct {
	Hits []Hit // newest first, at most the limit
	More bool  // there are more; then the hits are in the latest modified sessions
	// Unread are the files that could not be searched.
	Unread []*FileHits
	// calls means that the hits are a Touched's.
	calls bool
	// Modified is the modification time of the newest file, ns since the epoch.
	Modified int64
}

// tableRow is a line of the table.
type tableRow struct {
	time    string
	session string
	kind    string // of the entry, or of another match
	path    string
	text    string
	copies  string
	prompt  string
}

// titles is the first line of the table.
var titles = tableRow{
	time:    "time",
	session: "session",
	kind:    "what",
	path:    "path",
	text:    "text",
	copies:  "copies",
	prompt:  "prompt",
}

// fields returns the fields of a line in the order of the table. In one of calls the prompt stands before the
// call.
func (r *Result) fields(row tableRow) []string {
	if r.calls {
		return []string{row.time, row.session, row.kind, row.path, row.prompt, row.text, row.copies}
	}
	return []string{row.time, row.session, row.kind, row.path, row.text, row.copies, row.prompt}
}

// tableRow returns the hit's line of the table.
func (h *Hit) tableRow() tableRow {
	return tableRow{
		time:    h.When(),
		session: h.Session,
		kind:    h.What,
		path:    h.Path(),
		text:    h.Line,
		copies:  strconv.Itoa(h.Copies),
		prompt:  names.OrDash(h.Prompt),
	}
}

// maxUnread bounds the names in a table of files that could not be searched.
const maxUnread = 100

// Table returns results.tsv: a line for each hit, then remarks. Fields are escaped like labels
// (docs/design.md section 2).
func (r *Result) Table() []byte {
	var out []byte
	add := func(row tableRow) {
		out = names.AppendLabelFields(out, r.fields(row)...)
	}
	say := func(path, text string) {
		add(tableRow{
			time:    "-",
			session: "-",
			kind:    "-",
			path:    path,
			text:    text,
			copies:  "-",
			prompt:  "-",
		})
	}
	add(titles)
	for i := range r.Hits {
		add(r.Hits[i].tableRow())
	}
	for i, f := range r.Unread {
		if i == maxUnread {
			say("-", fmt.Sprintf("another %d files could not be searched", len(r.Unread)-i))
			break
		}
		say(f.Path(), "could not be searched: "+f.Err.Error())
	}
	if r.More {
		const more = "there are more than these %d, which are in the sessions that were modified last: %s"
		say("-", fmt.Sprintf(more, len(r.Hits), r.Advice()))
	}
	return out
}

// Advice returns how to find less, as a phrase.
func (r *Result) Advice() string {
	if r.calls {
		return "look at a file or directory below"
	}
	return "add words, after: or cwd:"
}

// When returns the time in the format of the table.
func (h *Hit) When() string { return h.Time.UTC().Format(rawjson.TimestampLayout) }

// AppendLine appends the hit as a line of a table with the path first and the prompt last.
func (h *Hit) AppendLine(dst []byte) []byte {
	return names.AppendLabelFields(dst, h.Path(), h.When(), h.What, h.Line, names.OrDash(h.Prompt))
}

// AppendJSON appends the hit as a line of JSON: the columns of results.tsv, the ids and the role.
func (h *Hit) AppendJSON(dst []byte) []byte {
	return rawjson.AppendLine(dst, struct {
		Time    string `json:"time"`
		Session string `json:"session"`
		ID      string `json:"id"`
		Entry   string `json:"entry,omitempty"`
		Role    string `json:"role,omitempty"`
		What    string `json:"what"`
		Path    string `json:"path"`
		Prompt  string `json:"prompt,omitempty"`
		Text    string `json:"text"`
		Copies  int    `json:"copies"`
	}{
		Time:    h.When(),
		Session: names.TextUTF8(h.Title),
		ID:      names.TextUTF8(h.ID),
		Entry:   h.Entry,
		Role:    names.TextUTF8(h.Role),
		What:    h.What,
		Path:    h.Path(),
		Prompt:  names.TextUTF8(h.Prompt),
		Text:    names.TextUTF8(h.Line),
		Copies:  h.Copies,
	})
}

// AppendJSON appends the session as a line of JSON.
func (f *FileHits) AppendJSON(dst []byte) []byte {
	return rawjson.AppendLine(dst, struct {
		Session string `json:"session"`
		ID      string `json:"id"`
		Path    string `json:"path"`
		Hits    int    `json:"hits"`
	}{
		Session: names.TextUTF8(f.Title),
		ID:      names.TextUTF8(f.ID),
		Path:    f.Directory(),
		Hits:    f.Count,
	})
}

// Path returns the path of the hit's file in the mount.
func (h *Hit) Path() string { return h.Directory() + "/" + h.Below() }

// Below returns the path of the hit's file in its session's directory.
func (h *Hit) Below() string {
	if h.Entry == "" {
		return "title"
	}
	return "entries/" + h.Entry + ".json"
}
