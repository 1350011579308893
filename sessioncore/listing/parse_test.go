package listing

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// prefixOf returns the beginning of a file in the words of testdata/prefixes.txt.
func prefixOf(words string) string {
	lines := strings.Split(words, "\n")
	for i, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "header":
			line = headerLine("a", "/w")
		case "operator":
			line = `{"type": "session_header", "id": "o", "timestamp": 1770106500.25, "cwd": "/w", "title": "T"}`
		case "slot":
			line = string(names.TitleSlot(rest, "user", "2026-02-03T08:15:00.250Z"))
		case "user", "assistant", "tool":
			line = strings.Replace(userLine(rest), "user", word, 1)
		}
		lines[i] = strings.TrimSuffix(line, "\n")
	}
	return strings.Join(lines, "\n")
}

// userLine is a line with a user's message.
func userLine(content string) string {
	return `{"type":"message","message":{"role":"user","content":` + content + "}}\n"
}

// TestPrefixes: the facts of the beginnings of files, as the client's list has them.
func TestPrefixes(t *testing.T) {
	check := func(t *testing.T, name, prefix, want string) {
		got := "not listed\n"
		if info := parseInfo([]byte(prefix)); info != nil {
			got = fmt.Sprintf("%q %q %q %d %q\n", info.ID, info.CWD, info.Title, info.MessageCount, info.first)
		}
		require.Equal(t, want, got, name)
	}
	sessiontest.Page(t, "testdata/prefixes.txt", func(t *testing.T, name, words, want string) { check(t, name, prefixOf(words), want) })
	check(t, "byte order mark", "\xEF\xBB\xBF"+headerLine("a", "/w"), `"a" "/w" "" 0 "(no messages)"`+"\n")
	check(t, "cut in a rune", strings.TrimSuffix(prefixOf("header\nuser \"é\xF0\x9F"), "}}"), `"a" "/w" "" 1 "é�"`+"\n")
}

// TestDisplayNames: the display name comes from the title, the first message or the id, and is cut at a word.
func TestDisplayNames(t *testing.T) {
	sessiontest.Table(t, "testdata/display-names.txt", func(t *testing.T, _, give string) string {
		info := NewInfo("p/2026_x.jsonl", storage.Stat{}, "")
		_, err := fmt.Sscanf(give, "%q %q %q", &info.Title, &info.first, &info.ID)
		require.NoError(t, err)
		return info.DisplayName()
	})
	info := NewInfo("p/2026_x.jsonl", storage.Stat{}, "")
	info.Title = "a\xED\xA0\xBD"
	require.Equal(t, info.Title, info.DisplayName(), "a surrogate")
}

// TestCreated: each dialect has its own forms of the header's timestamp.
func TestCreated(t *testing.T) {
	types := map[string]string{"operator": "session_header", "omp": "session"}
	sessiontest.Table(t, "testdata/created.txt", func(_ *testing.T, agent, timestamp string) string {
		info := parseInfo([]byte(`{"type":"` + types[agent] + `","id":"o","timestamp":` + timestamp + "}"))
		if info.created == 0 {
			return ""
		}
		return time.UnixMilli(info.created).UTC().Format(rawjson.TimestampLayout)
	})
}

// FuzzListPrefix: no prefix makes the list panic, or break a line of the index or a name.
func FuzzListPrefix(f *testing.F) {
	sessiontest.Page(f, "testdata/prefixes.txt", func(f *testing.F, _, words, _ string) { f.Add([]byte(prefixOf(words))) })
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
		l.write(t, info.Name(), string(prefix))
		found, err := l.Resume(context.Background(), names.FileName(info.ID), false)
		require.NoError(t, err)
		require.Equal(t, info.ID, found.ID)
		checkTrees(t, l)
	})
}

// TestLineOfJSON: the keys of a line keep their order, and only characters that must be are escaped, as readers may depend on both.
func TestLineOfJSON(t *testing.T) {
	const want = `{"id":"<\u2028","path":"sessions/p/x","cwd":"/a&b` + "\uFFFD" + `","title":null,"created":null,` +
		`"modified":"1970-01-01T00:00:00.000Z","messageCount":0,"firstMessage":"(no messages)",` +
		`"parentSession":"p\u0001","size":0}` + "\n"
	info := parseInfo([]byte(`{"type":"session","id":"<\u2028","cwd":"/a&b\ud83c","parentSession":"p\u0001"}` + "\n"))
	dir := &sessionDir{name: "p", shownIn: "sessions"}
	info.file = &sessionFile{dir: dir, name: "p/x.jsonl"}
	line := info.appendLine(nil)
	require.Equal(t, want, string(line))
}

// TestLongHeader: a session is listed however many directories its header names.
func TestLongHeader(t *testing.T) {
	header := `{"type":"session","version":3,"id":"x","cwd":"/w","previousSessionFiles":["` + strings.Repeat("/long", 2000) + `"],"title":"T"}` + "\n"
	slot := `{"type":"title","v":1,"title":"S","updatedAt":"2026-02-16T10:20:30.000Z","pad":""}` + "\n"
	const name = "w/2026-01-01T00-00-00-000Z_x.jsonl"
	for title, file := range map[string]string{
		"T": header + userLine(`"hello"`),
		"S": slot + header,
	} {
		info := only(t, listOf(t, [2]string{name, file}))
		require.Equal(t, title, info.Title)
		require.Equal(t, noMessages, info.first)
	}
	cut := strings.TrimSuffix(header, "}\n")
	for _, file := range []string{cut, strings.Repeat("no header ", 2000)} {
		l := listOf(t, [2]string{name, file})
		require.Empty(t, l.all(t))
	}
}
