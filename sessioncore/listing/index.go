package listing

import (
	"io"
	"sort"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// sessionLine is a line of index.jsonl. Every line has all ten keys, in this order, so that tools which take columns
// from the first line find them; a missing value is null.
type sessionLine struct {
	ID            string  `json:"id"`
	Path          string  `json:"path"`
	CWD           string  `json:"cwd"`
	Title         *string `json:"title"`
	Created       *string `json:"created"`
	Modified      string  `json:"modified"`
	MessageCount  int     `json:"messageCount"`
	FirstMessage  string  `json:"firstMessage"`
	ParentSession *string `json:"parentSession"`
	Size          int64   `json:"size"`
}

// appendLine appends the session's line of index.jsonl. Clients leave lone surrogates where they cut a title; they
// become U+FFFD, since jq stops at the escape of one and would lose the following lines.
func (i *Info) appendLine(dst []byte) []byte {
	return rawjson.AppendLine(dst, sessionLine{
		ID:            names.TextUTF8(i.ID),
		Path:          string(rawjson.AppendUTF8([]byte(i.shownIn+"/"), []byte(i.DirName()))),
		CWD:           names.TextUTF8(i.CWD),
		Title:         orNull(names.TextUTF8(i.Title), i.flags&infoTitle != 0),
		Created:       orNull(isoTime(i.created), i.flags&infoCreated != 0),
		Modified:      isoTime(time.Unix(0, i.modified()).UnixMilli()),
		MessageCount:  int(i.MessageCount),
		FirstMessage:  names.TextUTF8(i.first),
		ParentSession: orNull(names.TextUTF8(i.Parent), i.flags&infoParent != 0),
		Size:          i.Stat.Size,
	})
}

// orNull returns a pointer to text, or nil, which is marshaled as null, if there is false.
func orNull(text string, there bool) *string {
	if !there {
		return nil
	}
	return &text
}

// isoTime formats milliseconds since the epoch.
func isoTime(ms int64) string { return time.UnixMilli(ms).UTC().Format(rawjson.TimestampLayout) }

// IndexDocument is index.jsonl as of one moment: a line for each session, most recently modified first. Lines are
// rendered when they are read. Its methods are safe for concurrent use.
type IndexDocument struct {
	infos []*Info
	ends  []int64 // offset of the end of each line
}

// Index returns index.jsonl with a line for each of the sessions.
func (s *Sessions) Index() *IndexDocument {
	d := &IndexDocument{infos: s.infos, ends: make([]int64, len(s.infos))}
	end := int64(0)
	for i, info := range s.infos {
		end += int64(info.lineSize)
		d.ends[i] = end
	}
	return d
}

// Size returns the document's size in bytes.
func (d *IndexDocument) Size() int64 {
	if len(d.ends) == 0 {
		return 0
	}
	return d.ends[len(d.ends)-1]
}

// ReadAt implements io.ReaderAt.
func (d *IndexDocument) ReadAt(p []byte, off int64) (n int, err error) {
	var line []byte
	at := sort.Search(len(d.ends), func(i int) bool { return d.ends[i] > off })
	for ; at < len(d.ends) && n < len(p); at++ {
		info := d.infos[at]
		line = info.appendLine(line[:0])
		start := d.ends[at] - int64(info.lineSize)
		n += copy(p[n:], line[off+int64(n)-start:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
