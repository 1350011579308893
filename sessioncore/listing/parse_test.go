package listing

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// What the client's list makes of a prefix; checked against client 14.9.9, with a slot against 18.2.3.
var listCases = map[string]struct {
	prefix string
	id     string // "-": not listed
	cwd    string
	title  string
	count  int
	first  string
}{
	"empty":          {"", "-", "", "", 0, ""},
	"header alone":   {headerLine("a", "/w"), "a", "/w", "", 0, noMessages},
	"empty id":       {`{"type":"session","id":""}`, "", "", "", 0, noMessages},
	"id is a number": {`{"type":"session","id":5}`, "-", "", "", 0, ""},
	"cut header":     {`{"type":"session","id":"a","cwd":"/w`, "-", "", "", 0, ""},
	"no strings":     {`{"type":"session","id":"a","cwd":5,"title":null,"timestamp":7}`, "a", "", "", 0, noMessages},
	"empty title":    {`{"type":"session","id":"a","title":""}` + "\n" + `{"type":"compaction","shortSummary":"s"}`, "a", "", "s", 0, noMessages},
	"summaries": {`{"type":"session","id":"a"}` + "\n" + `{"type":"compaction","shortSummary":"s"}` + "\n" +
		`{"type":"compaction","shortSummary":"t"}`, "a", "", "t", 0, noMessages},
	"byte order mark": {"\xEF\xBB\xBF" + headerLine("a", "/w"), "a", "/w", "", 0, noMessages},
	"garbage first":   {"garbage\n" + headerLine("a", "/w"), "a", "/w", "", 0, noMessages},
	"value first":     {"7\n" + headerLine("a", "/w"), "-", "", "", 0, ""},
	"message":         {headerLine("a", "/w") + message(`"hi"`), "a", "/w", "", 1, "hi"},
	"blocks": {headerLine("a", "/w") +
		message(`[{"type":"text","text":"x"},{"type":"image"},{"type":"text","text":["y",null,[1.50]]},{"type":"text"}]`), "a", "/w", "", 1, "x  "},
	"no user":         {headerLine("a", "/w") + strings.Replace(message(`"hi"`), "user", "assistant", 1), "a", "/w", "", 1, noMessages},
	"content missing": {headerLine("a", "/w") + `{"type":"message","message":{"role":"user"}}`, "a", "/w", "", 1, noMessages},
	"null value":      {headerLine("a", "/w") + "null\n", "-", "", "", 0, ""},
	"other role":      {headerLine("a", "/w") + strings.Replace(message(`{}`), "user", "tool", 1), "a", "/w", "", 1, noMessages},
	"no message":      {headerLine("a", "/w") + `{"type":"message","message":0}`, "a", "/w", "", 1, noMessages},
	"types anywhere":  {headerLine("a", "/w") + `{"type":"custom","data":[{"type":"message"},{"type": "message"}]}`, "a", "/w", "", 2, noMessages},
	"cut message": {headerLine("a", "/w") + `{"type":"message","message":{"role":"user","content":"the beginning of`, "a", "/w", "", 1,
		"the beginning of"},
	"cut block": {headerLine("a", "/w") + `{"type":"message","message":{"role":"user","content":[{"type":"text","text":"be\tg`, "a",
		"/w", "", 1, "be\tg"},
	"cut in a rune":     {headerLine("a", "/w") + `{"type":"message","message":{"role":"user","content":"é` + "\xF0\x9F", "a", "/w", "", 1, "é\uFFFD"},
	"torn line":         {headerLine("a", "/w") + `{"a":` + "\n" + message(`"hi"`), "a", "/w", "", 1, "hi"},
	"torn, then two":    {headerLine("a", "/w") + `{"a":` + "\n" + message(`"hi"`) + message(`"ho"`), "a", "/w", "", 2, "hi"},
	"two on a line":     {headerLine("a", "/w") + `{}{"type":"x"}` + "\n" + message(`"hi"`), "a", "/w", "", 1, "hi"},
	"operator":          {operatorListLine + `{"type":"session_info","name":"N"}` + "\n" + message(`"hi"`), "o", "/w", "N", 1, "hi"},
	"operator, no name": {operatorListLine + `{"type":"session_info","name":"N"}` + "\n" + `{"type":"session_info","name":null}`, "o", "/w", "", 0, noMessages},
	"slot":              {titleSlot("T") + headerLine("a", "/w"), "a", "/w", "T", 0, noMessages},
	"empty slot":        {titleSlot(" ") + `{"type":"session","id":"a","title":"H"}`, "a", "", "", 0, noMessages},
	"no slot":           {`{"type":"title","v":2,"title":"T","updatedAt":"","pad":""}` + "\n" + headerLine("a", "/w"), "-", "", "", 0, ""},
	"slot, second line": {"\n" + titleSlot("T") + headerLine("a", "/w"), "-", "", "", 0, ""},
	"slot, no user":     {titleSlot("T") + headerLine("a", "/w") + strings.Replace(message(`"hi"`), "user", "assistant", 1), "a", "/w", "T", 1, "hi"},
}

const operatorListLine = `{"type": "session_header", "id": "o", "timestamp": 1770106500.25, "cwd": "/w", "title": "T"}` + "\n"

// message is a line with a user's message.
func message(content string) string {
	return `{"type":"message","message":{"role":"user","content":` + content + "}}\n"
}

func TestListCases(t *testing.T) {
	for name, c := range listCases {
		t.Run(name, func(t *testing.T) {
			info := parseInfo([]byte(c.prefix))
			if c.id == "-" {
				require.Nil(t, info)
				return
			}
			require.NotNil(t, info)
			require.Equal(t, []any{c.id, c.cwd, c.title, c.count, c.first}, []any{info.ID, info.CWD, info.Title, info.MessageCount, info.first})
		})
	}
}

func TestDisplayNames(t *testing.T) {
	for name, c := range map[string]struct{ title, first, id, want string }{
		"title":          {"A title", "first", "id", "A title"},
		"first":          {"", "first", "id", "first"},
		"no messages":    {"", noMessages, "id", "id"},
		"file":           {"\x00 \n", noMessages, "\x7f", "2026_x"},
		"one line":       {"one\r\ntwo", "", "", "one"},
		"empty line":     {"\ntwo", "first", "", "first"},
		"control":        {"a\x1b[2Jb\u0085c\x00", "", "", "a[2Jbc"},
		"40 characters":  {strings.Repeat("é", 40), "", "", strings.Repeat("é", 40)},
		"41 characters":  {strings.Repeat("é", 41), "", "", strings.Repeat("é", 39) + "…"},
		"cut at a blank": {strings.Repeat("x", 39) + " y", "", "", strings.Repeat("x", 39) + "…"},
		"cut at a word":  {strings.Repeat("word ", 8) + "x", "", "", strings.Repeat("word ", 7) + "word…"},
		"a long word":    {"a " + strings.Repeat("x", 60), "", "", "a " + strings.Repeat("x", 37) + "…"},
		"blanks":         {"\u00a0 a \ufeff", "", "", "a"},
		"surrogate":      {"a\xED\xA0\xBD", "", "", "a\xED\xA0\xBD"},
	} {
		t.Run(name, func(t *testing.T) {
			info := NewInfo("p/2026_x.jsonl", storage.Stat{}, "")
			info.Title, info.first, info.ID = c.title, c.first, c.id
			require.Equal(t, c.want, info.DisplayName())
		})
	}
}

func titleSlot(title string) string {
	return string(names.TitleSlot(title, "user", "2026-02-03T08:15:00.250Z"))
}

// TestCreated: a header's timestamp; operator's may be a number of seconds or milliseconds.
func TestCreated(t *testing.T) {
	for timestamp, want := range map[string]string{
		`"2026-02-03T08:15:00.250Z"`: "2026-02-03T08:15:00.250Z", `1770106500.25`: "2026-02-03T08:15:00.250Z", `1770106500250`: "2026-02-03T08:15:00.250Z",
		`"2026-02-03T08:15:00.250000+00:00"`: "2026-02-03T08:15:00.250Z", `null`: "-", `"never"`: "-", `1e300`: "-", `[]`: "-",
	} {
		info := parseInfo([]byte(`{"type":"session_header","id":"o","timestamp":` + timestamp + "}"))
		created := "-"
		if info.created != 0 {
			created = time.UnixMilli(info.created).UTC().Format(rawjson.TimestampLayout)
		}
		require.Equal(t, want, created, timestamp)
	}
	require.Zero(t, parseInfo([]byte(`{"type":"session","id":"a","timestamp":1770106500250}`)).created, "omp's is a string")
}

// FuzzListPrefix: no prefix makes the list panic, or break a line of the index or a name.
func FuzzListPrefix(f *testing.F) {
	for _, c := range listCases {
		f.Add([]byte(c.prefix))
	}
	f.Add([]byte(strings.Repeat(`"type":`, 500)))
	f.Add([]byte(strings.Repeat("[1,\n", 1000) + "x"))
	f.Fuzz(func(t *testing.T, prefix []byte) {
		info := parseInfo(prefix[:min(len(prefix), prefixSize)])
		if info == nil {
			return
		}
		info.file = NewInfo("p/x.jsonl", storage.Stat{}, "").file
		line := info.appendLine(nil)
		require.True(t, utf8.Valid(line))
		require.True(t, rawjson.IsValidObject(rawjson.Value(line[:len(line)-1])), "%s", line)
		require.NotContains(t, string(line[:len(line)-1]), "\n")
		name := names.FileName("01-" + info.DisplayName())
		require.True(t, utf8.ValidString(name))
		require.LessOrEqual(t, len(name), names.MaxName+1+names.HashLength)
		total := len(info.ID) + len(info.CWD) + len(info.Title) + len(info.Parent) + len(info.first)
		require.LessOrEqual(t, total, 5*3*prefixSize, "bounded memory")
		l := newListing(t, memory.New())
		require.NoError(t, l.store.Storage().(*memory.Storage).WriteFile(info.Name(), prefix))
		found, err := l.Resume(context.Background(), names.FileName(info.ID), false)
		require.NoError(t, err)
		require.Equal(t, info.ID, found.ID)
		checkTrees(t, l)
	})
}

// TestLineOfJSON: the order of the keys, and which characters are escaped, are what readers know.
func TestLineOfJSON(t *testing.T) {
	info := parseInfo([]byte(`{"type":"session","id":"<\u2028","cwd":"/a&b\ud83c","parentSession":"p\u0001"}` + "\n"))
	info.file = &sessionFile{dir: &sessionDir{name: "p", shownIn: "sessions"}, base: "x.jsonl"}
	require.Equal(t, `{"id":"<\u2028","path":"sessions/p/x","cwd":"/a&b`+"\uFFFD"+`","title":null,"created":null,"modified":"1970-01-01T00:00:00.000Z",`+
		`"messageCount":0,"firstMessage":"(no messages)","parentSession":"p\u0001","size":0}`+"\n", string(info.appendLine(nil)))
}

// TestLongHeader: a session is listed however many directories its header names.
func TestLongHeader(t *testing.T) {
	header := `{"type":"session","version":3,"id":"x","cwd":"/w","previousSessionFiles":["` + strings.Repeat("/long", 2000) + `"],"title":"T"}` + "\n"
	slot := `{"type":"title","v":1,"title":"S","updatedAt":"2026-02-16T10:20:30.000Z","pad":""}` + "\n"
	for want, file := range map[string]string{
		"T": header + message(`"hello"`), "S": slot + header, "": header[:len(header)-2], " ": strings.Repeat("no header ", 2000),
	} {
		l := listOf(t, [2]string{"w/2026-01-01T00-00-00-000Z_x.jsonl", file})
		all, err := l.Sessions(t.Context())
		require.NoError(t, err)
		if strings.TrimSpace(want) == "" {
			require.Empty(t, all.All())
			continue
		}
		require.Len(t, all.All(), 1)
		require.Equal(t, want, all.All()[0].Title)
		require.Equal(t, noMessages, all.All()[0].first)
	}
}
