package listing

import (
	"fmt"
	"hash/maphash"
	"io"
	"sort"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// sessionLine is a line of index.jsonl. All ten keys are in every line, in this order, so that tools which take
// columns from the first line find them; what is not there is null.
type sessionLine struct {
	ID            rawjson.Text  `json:"id"`
	Path          rawjson.Text  `json:"path"`
	CWD           rawjson.Text  `json:"cwd"`
	Title         *rawjson.Text `json:"title"`
	Created       *rawjson.Text `json:"created"`
	Modified      rawjson.Text  `json:"modified"`
	MessageCount  int           `json:"messageCount"`
	FirstMessage  rawjson.Text  `json:"firstMessage"`
	ParentSession *rawjson.Text `json:"parentSession"`
	Size          int64         `json:"size"`
}

// appendLine appends the session's line of index.jsonl. A lone surrogate, which clients leave where they cut a title,
// is U+FFFD: jq ends at its escape, and the sessions behind it would be lost.
func (i *Info) appendLine(dst []byte) []byte {
	return rawjson.AppendLine(dst, sessionLine{
		ID:            rawjson.Text(sessioncore.TextUTF8(i.ID)),
		Path:          rawjson.Text(rawjson.AppendUTF8([]byte("sessions/"), []byte(i.DirName()))),
		CWD:           rawjson.Text(sessioncore.TextUTF8(i.CWD)),
		Title:         rawjson.TextOrNull(sessioncore.TextUTF8(i.Title), i.flags&infoTitle != 0),
		Created:       rawjson.TextOrNull(isoTime(i.created), i.flags&infoCreated != 0),
		Modified:      rawjson.Text(isoTime(i.Stat.ModTime().UnixMilli())),
		MessageCount:  int(i.MessageCount),
		FirstMessage:  rawjson.Text(sessioncore.TextUTF8(i.first)),
		ParentSession: rawjson.TextOrNull(sessioncore.TextUTF8(i.Parent), i.flags&infoParent != 0),
		Size:          i.Stat.Size,
	})
}

// isoTime is JavaScript's toISOString: a year of more than four digits has a sign and six.
func isoTime(ms int64) string {
	t := time.UnixMilli(ms).UTC()
	year := t.Year()
	if year >= 0 && year <= 9999 {
		return t.Format(rawjson.TimestampLayout)
	}
	sign := '+'
	if year < 0 {
		sign, year = '-', -year
	}
	return fmt.Sprintf("%c%06d%s", sign, year, t.Format("-01-02T15:04:05.000Z"))
}

// IndexDocument is index.jsonl as it was at one moment: a line for each session, newest first. It is made
// while it is read.
type IndexDocument struct {
	listing *Listing
	infos   []*Info
	ends    []int64 // where each line ends
}

// Index returns index.jsonl for what the look found.
func (s *Sessions) Index() *IndexDocument {
	d := &IndexDocument{listing: s.listing, infos: s.infos, ends: make([]int64, len(s.infos))}
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

// ReadAt implements io.ReaderAt. Errors: ErrStale where a first message that is too long to be kept is
// another one by now.
func (d *IndexDocument) ReadAt(p []byte, off int64) (n int, err error) {
	var line []byte
	at := sort.Search(len(d.ends), func(i int) bool { return d.ends[i] > off })
	for ; at < len(d.ends) && n < len(p); at++ {
		info := d.infos[at]
		if line, err = d.listing.line(line[:0], info); err != nil {
			return n, err
		}
		start := d.ends[at] - int64(info.lineSize)
		n += copy(p[n:], line[off+int64(n)-start:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// line appends the line of a session, for which a long first message is read again.
func (l *Listing) line(dst []byte, info *Info) ([]byte, error) {
	if info.flags&infoCut == 0 {
		return info.appendLine(dst), nil
	}
	var buf [prefixSize]byte
	prefix, _, err := readPrefix(l.store.Storage(), info.Name, buf[:])
	if err != nil {
		return dst, fmt.Errorf("%w: %w", storage.ErrStale, err)
	}
	now := parseInfo(prefix)
	if now == nil || maphash.String(firstSeed, now.first) != info.firstSum {
		return dst, fmt.Errorf("%w: the first message of %s", storage.ErrStale, info.Name)
	}
	whole := *info
	whole.first = now.first
	return whole.appendLine(dst), nil
}
