package agents

import (
	"strconv"
	"strings"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
)

// Entry is an entry of a session, made of another agent's records.
type Entry struct {
	Type   string
	ID     string        // WTF-8 text
	Parent string        // "" for none
	Time   rawjson.Value // a JSON value as in the record; may be missing
	Body   []byte        // the other members, as in `"message":{…}`
	Lines  []int64       // the lines of its records in the agent's file, from 1
	Path   string        // the path of that file, if it is not the session's own
	// Session is the path of a subagent's session that it is about, or "".
	Session string
}

// AppendTo appends the entry as a line. The entry must have a line of a record.
func (e *Entry) AppendTo(dst []byte) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, e.Type...)
	dst = append(dst, `","id":`...)
	dst = rawjson.AppendQuoted(dst, e.ID)
	dst = append(dst, `,"parentId":`...)
	if e.Parent == "" {
		dst = append(dst, "null"...)
	} else {
		dst = rawjson.AppendQuoted(dst, e.Parent)
	}
	dst = AppendMember(dst, "timestamp", e.Time)
	dst = append(dst, ',')
	dst = append(dst, e.Body...)
	dst = append(dst, `,"origin":{`...)
	if e.Path != "" {
		dst = append(dst, `"path":`...)
		dst = rawjson.AppendQuoted(dst, e.Path)
		dst = append(dst, ',')
	}
	dst = append(dst, `"line":`...)
	dst = strconv.AppendInt(dst, e.Lines[0], 10)
	if len(e.Lines) > 1 {
		dst = append(dst, `,"lines":[`...)
		for i, line := range e.Lines {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, line, 10)
		}
		dst = append(dst, ']')
	}
	if e.Session != "" {
		dst = append(dst, `,"session":`...)
		dst = rawjson.AppendQuoted(dst, e.Session)
	}
	return append(dst, "}}\n"...)
}

// maxTitle bounds a title from a prompt, in bytes.
const maxTitle = 200

// maxName bounds a given title, in bytes: a list holds all sessions'.
const maxName = 4 << 10

// Name returns a copy of a given title, without the end of one longer than maxName. As a copy it keeps no longer text
// around the title in memory.
func Name(title string) string {
	if len(title) > maxName {
		return strings.ToValidUTF8(title[:maxName], "") + "…"
	}
	return strings.Clone(title)
}

// nameOf returns the name of a tool or a model, without the end of a very long one: it is in several entries, and in lists.
func nameOf(name rawjson.Value) rawjson.Value {
	if len(name) <= maxName {
		return name
	}
	text, _ := name.Text()
	return Quoted(Name(text))
}

// FirstLine returns a copy of the first line of a prompt that has words, as a title: at most maxTitle bytes of it. It
// returns "" for blanks.
func FirstLine(text string) string {
	text = rawjson.TrimSpace(text)
	lineEnd := strings.IndexAny(text, "\r\n")
	if lineEnd >= 0 {
		text = rawjson.TrimSpace(text[:lineEnd])
	}
	if len(text) > maxTitle {
		return strings.ToValidUTF8(text[:maxTitle], "") + "…"
	}
	return strings.Clone(text)
}

// Between returns the text between two others without blanks around it, "" if the first one is missing. It ends with
// the text if the second one is missing.
func Between(text, begin, end string) string {
	_, text, _ = strings.Cut(text, begin)
	text, _, _ = strings.Cut(text, end)
	return rawjson.TrimSpace(text)
}

// TimeText returns the JSON text of a time in ms since the epoch, nil for one that is not after it.
func TimeText(ms int64) rawjson.Value {
	if ms <= 0 {
		return nil
	}
	return Quoted(time.UnixMilli(ms).UTC().Format(rawjson.TimestampLayout))
}

// AppendMember appends a comma and a member of an object, unless its value is missing.
func AppendMember(dst []byte, key string, value rawjson.Value) []byte {
	if len(value) == 0 {
		return dst
	}
	dst = append(dst, `,"`...)
	dst = append(dst, key...)
	dst = append(dst, `":`...)
	return append(dst, value...)
}

// AppendText is AppendMember for texts. It omits other values.
func AppendText(dst []byte, key string, value rawjson.Value) []byte {
	if !value.IsString() {
		return dst
	}
	return AppendMember(dst, key, value)
}

// appendMillis appends a comma and the member timestamp of a message, in ms since the epoch. It appends nothing for a
// time that is missing or wrong.
func appendMillis(dst []byte, at rawjson.Value) []byte {
	ms, _, ok := rawjson.ReadTimestamp(at)
	if !ok {
		return dst
	}
	dst = append(dst, `,"timestamp":`...)
	return strconv.AppendInt(dst, ms, 10)
}
