package search

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

func query(t *testing.T, text string) *Query {
	t.Helper()
	q, err := ParseQuery(text)
	require.NoError(t, err, text)
	return q
}

func look(t *testing.T, s *Searcher, text string) []string {
	t.Helper()
	return entriesOf(t, s, query(t, text))
}

func entriesOf(t *testing.T, s *Searcher, q *Query) (names []string) {
	t.Helper()
	r, err := s.Search(t.Context(), q)
	require.NoError(t, err)
	require.Empty(t, r.Unread)
	for _, h := range r.Hits {
		names = append(names, h.Entry)
	}
	return names
}

func one(t *testing.T, lines ...string) *Searcher {
	return New(SearchedSessions{Files: sessiontest.Memory(t, []byte(sessiontest.Header+strings.Join(lines, "")))})
}

// TestVisible: what of an entry is searched.
func TestVisible(t *testing.T) {
	sessiontest.Page(t, "testdata/visible.txt", func(t *testing.T, _, lines, want string) {
		s := one(t, lines+"\n")
		for row := range strings.Lines(want) {
			query, found, _ := strings.Cut(row, " →")
			require.Equal(t, strings.TrimSpace(found), strings.Join(look(t, s, query), " "), query)
		}
	})
}

// TestHostile: long words, text that is not UTF-8, and escapes at every place where text is cut.
func TestHostile(t *testing.T) {
	size, shifts := 10<<20, 7
	if sessiontest.UnderRace {
		size, shifts = 1<<20, 1
	}
	long := strings.Repeat("x", size)
	for _, text := range []string{long + "needle", "needle" + long, long[:window-3] + `n\u0065edle` + long,
		strings.Repeat(`\ud83d\ude00`, 20_000) + "needle", strings.Repeat("\x80", window+2) + "needle\xff" + strings.Repeat("é", window)} {
		s := one(t, sessiontest.MessageLine(0, `{"role":"user","content":"`+text+`"}`))
		require.Equal(t, []string{"e0"}, look(t, s, "needle"))
		require.Equal(t, []string{"e0"}, look(t, s, "needle -needles"))
		require.Empty(t, look(t, s, "needles"))
	}
	for shift := range shifts {
		for _, unit := range []string{`\n`, `\u00e9`, `\ud83d\ude00`, "é", "😀", `\\`, "\xe2\x82"} {
			body := strings.Repeat("x", shift) + strings.Repeat(unit, window/len(unit)+20)
			s := one(t, sessiontest.MessageLine(0, `{"role":"user","content":"`+body+`"}`))
			for len(body) > 0 {
				n := rawjson.CutPoint([]byte(body), window)
				require.Positive(t, n)
				body = body[n:]
				require.True(t, body == "" || strings.HasPrefix(body, unit) || unit == "\xe2\x82", "%q", unit)
			}
			require.Len(t, look(t, s, "xxx -é -yy"), map[bool]int{true: 1}[shift > 2 && unit != "é" && unit != `\u00e9`])
		}
	}
}

// watched calls before before a file is opened.
type watched struct {
	*memory.Storage
	before func(name string) error
}

func (c *watched) Open(name string) (storage.Object, error) {
	if err := c.before(name); err != nil {
		return nil, err
	}
	return c.Storage.Open(name)
}

func manyFiles(t *testing.T, n int) *memory.Storage {
	files := memory.New()
	for i := range n {
		require.NoError(t, files.WriteFile(fmt.Sprintf("p/%03d.jsonl", i), []byte(sessiontest.Header+
			sessiontest.MessageLine(0, fmt.Sprintf(`{"role":"user","content":"common m%03d"}`, i))+
			sessiontest.MessageLine(1, fmt.Sprintf(`{"role":"user","content":"common n%03d"}`, i)))))
	}
	return files
}

// TestAgainReadsOnlyWhatChanged: what is remembered is used for files in the same state alone.
func TestAgainReadsOnlyWhatChanged(t *testing.T) {
	f := sessiontest.NewFile(t, sessiontest.Header+sessiontest.Entry("first", ""))
	s := New(SearchedSessions{Files: f.Storage})
	settle := func() {
		st, err := f.Storage.Stat(sessiontest.FileName)
		require.NoError(t, err)
		time.Sleep(st.Settling(time.Now()))
	}
	settle()
	require.Len(t, look(t, s, "first"), 1)
	require.EqualValues(t, 1, s.FilesRead())
	require.Len(t, look(t, s, "first"), 1)
	require.EqualValues(t, 1, s.FilesRead())
	f.Append(sessiontest.MessageLine(1, `{"role":"user","content":"first again"}`))
	settle()
	require.Len(t, look(t, s, "first"), 2)
	require.EqualValues(t, 2, s.FilesRead())
	require.Empty(t, look(t, s, "second"))
	require.EqualValues(t, 3, s.FilesRead())
}

// TestLimit: the newest sessions' hits are shown, and that there are more.
func TestLimit(t *testing.T) {
	const many = 3000 // while a thread waits for a processor with an early file, another one reads on
	s := New(SearchedSessions{Files: manyFiles(t, many), Limit: 20})
	q := query(t, "common")
	r, err := s.Search(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, r.Hits, 20)
	require.True(t, r.More)
	require.Contains(t, string(r.Table()), "\t-\tthere are more than these 20,")
	require.Less(t, s.FilesRead(), int64(many))
	files := manyFiles(t, 60)
	copied, err := storage.ReadFile(files, "p/000.jsonl", 1<<20)
	require.NoError(t, err)
	require.NoError(t, files.WriteFile("q/000.jsonl", copied)) // its hits are copies, and none beyond the limit
	for _, limit := range []int{1, 119, 120, 121} {
		r, err := New(SearchedSessions{Files: files, Limit: limit}).Search(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, r.Hits, min(limit, 120))
		require.Equal(t, limit < 120, r.More, limit)
	}
}

// TestUnreadableFiles: a file that cannot be read is named, and takes no hit of another away.
func TestUnreadableFiles(t *testing.T) {
	files := &watched{manyFiles(t, 3), func(name string) error {
		if name == "p/001.jsonl" {
			return fmt.Errorf("the disk\nis %w", fs.ErrPermission)
		}
		return nil
	}}
	r, err := New(SearchedSessions{Files: files}).Search(t.Context(), query(t, "common"))
	require.NoError(t, err)
	require.Len(t, r.Hits, 4)
	require.Contains(t, string(r.Table()), "-\t-\t-\tsessions/p/001.jsonl\tcould not be searched: the disk\\nis permission denied\t-\t-\n")
}

// TestInterrupted: a search whose caller is gone ends, and leaves nothing behind that is not so.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	files := &watched{manyFiles(t, 50), func(string) error { cancel(); return nil }}
	s := New(SearchedSessions{Files: files})
	_, err := s.Search(ctx, query(t, "common"))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, s.FilesRead(), int64(50))
	files.before = func(string) error { return nil }
	require.Len(t, look(t, s, "common"), 100)
}

// TestSearchesAtOnce: maxRunning searches read files, and one more waits as long as its caller does.
func TestSearchesAtOnce(t *testing.T) {
	hold := make(chan struct{})
	s := New(SearchedSessions{Files: &watched{manyFiles(t, 1), func(string) error { <-hold; return nil }}})
	q := query(t, "common")
	done := make(chan error)
	search := func(ctx context.Context) {
		_, err := s.Search(ctx, q)
		done <- err
	}
	for range maxRunning {
		go search(t.Context())
	}
	require.Eventually(t, func() bool {
		free := s.running.TryAcquire(1)
		if free {
			s.running.Release(1)
		}
		return !free
	}, time.Minute, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	go search(ctx)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	close(hold)
	for range maxRunning {
		require.NoError(t, <-done)
	}
}

// TestRememberedIsBounded: by number, and by the budget of the mount.
func TestRememberedIsBounded(t *testing.T) {
	memory := budget.New(budget.Min)
	s := New(SearchedSessions{Files: manyFiles(t, 100), Memory: memory})
	for i := range 3 * maxMemos {
		look(t, s, fmt.Sprintf("n%03d", i))
		require.LessOrEqual(t, s.memos.Len(), maxMemos)
	}
	require.Positive(t, memory.Held())
	other := memory.Hold()
	require.NoError(t, other.Resize(memory.Limit()-memory.Held()))
	require.Len(t, look(t, s, "common"), 200)
	require.LessOrEqual(t, memory.Held(), memory.Limit())
	require.Less(t, s.memos.Len(), maxMemos)
}

// TestRegexp: what an expression finds in the pieces of the text, and the text that a file must have for it.
func TestRegexp(t *testing.T) {
	s := one(t,
		sessiontest.MessageLine(0, `{"role":"user","content":"call time.Now\nor time.Since \u0074wice"}`),
		sessiontest.MessageLine(1, `{"role":"assistant","content":"a `+strings.Repeat("x", 2*window)+` b K\u00e9lvin"}`))
	rows, err := os.ReadFile("testdata/regexps.txt")
	require.NoError(t, err)
	for row := range strings.Lines(string(rows)) {
		want := strings.Split(strings.TrimSuffix(row, "\n"), " → ")
		if row[0] == '#' {
			continue
		}
		q, err := Parser{}.Regexp(want[0], "")
		require.NoError(t, err)
		require.Equal(t, want[1], strings.Join(entriesOf(t, s, q), " "), row)
		var needles []string
		for n := q.needle; n != nil; n = n.or {
			needles = append(needles, string(n.want))
		}
		require.Equal(t, want[2], strings.Join(needles, " or "), row)
	}
	q, err := Parser{}.Regexp("time", "role:assistant")
	require.NoError(t, err)
	require.Equal(t, "assistant", q.role)
	_, err = Parser{}.Regexp("(a", "")
	require.ErrorIs(t, err, ErrQuery)
	require.ErrorContains(t, err, "missing closing )")
}

func TestParseQuery(t *testing.T) {
	for text, want := range map[string]slowQuery{
		"one":                                  {words: []string{"one"}},
		" one\ttwo\n":                          {words: []string{"one", "two"}},
		`"a phrase" -not -"nor this"`:          {words: []string{"a phrase"}, without: []string{"not", "nor this"}},
		"role:tool tool:bash x":                {words: []string{"x"}, role: "tool", tool: "bash"},
		`cwd:"/a b/../c/" x`:                   {words: []string{"x"}, cwd: "/c"},
		"http://x localhost:8080 id:7 say\"hi": {words: []string{"http://x", "localhost:8080", "id:7", `say"hi`}},
		`.git "rol:user" -"modle:x"`:           {words: []string{".git", "rol:user"}, without: []string{"modle:x"}},
		"-":                                    {words: []string{"-"}},
		"- a":                                  {words: []string{"-", "a"}},
		`"role:user"`:                          {words: []string{"role:user"}},
		"--flag x":                             {words: []string{"x"}, without: []string{"-flag"}},
	} {
		q := query(t, text)
		got := slowQuery{role: q.role, cwd: q.cwd}
		for _, w := range q.words {
			got.words = append(got.words, w.text)
		}
		for _, w := range q.without {
			got.without = append(got.without, w.text)
		}
		if q.tool != nil {
			got.tool = q.tool.text
		}
		require.Equal(t, want, got, text)
	}
	refused, err := os.ReadFile("testdata/refused.txt")
	require.NoError(t, err)
	for row := range strings.Lines(sessiontest.Expand(string(refused)) + "\xff → UTF-8\n\xed\xa0\x80 → UTF-8\n") {
		text, why, _ := strings.Cut(strings.TrimSuffix(row, "\n"), " → ")
		_, err := ParseQuery(text)
		require.ErrorIs(t, err, ErrQuery, text)
		require.ErrorContains(t, err, why, text)
	}
	q := query(t, "in:archive x")
	require.True(t, q.Archive())
}

// FuzzParseQuery: a query is refused with a reason, or has words that it itself has; nothing panics.
func FuzzParseQuery(f *testing.F) {
	corpus, err := os.ReadFile(filepath.Join("testdata", "queries"))
	require.NoError(f, err)
	for line := range strings.Lines(string(corpus)) {
		f.Add(strings.TrimSuffix(line, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuery(text)
		if err != nil {
			require.ErrorIs(t, err, ErrQuery)
			require.Greater(t, len(err.Error()), len(ErrQuery.Error())+2)
			return
		}
		require.True(t, utf8.ValidString(text))
		for _, w := range append(q.words, q.without...) {
			require.NotEmpty(t, w.text)
			require.True(t, w.isIn([]byte(text)), "%q", w.text)
		}
		again, err := ParseQuery(text)
		require.NoError(t, err)
		require.Equal(t, q, again)
	})
}

func TestMarks(t *testing.T) {
	for terms, want := range map[string]string{
		"tide":            "the <Tide>s, a <tide>, tid.e",
		"tide tides":      "the <Tides>, a <tide>, tid.e",
		"Tide":            "the <Tide>s, a tide, tid.e",
		`"a tide" tid.e`:  "the Tides, <a tide>, <tid.e>",
		"-tide role:user": "the Tides, a tide, tid.e",
	} {
		q := query(t, terms)
		text := "the Tides, a tide, tid.e"
		if marks := q.Marks(); marks != nil {
			text = marks.ReplaceAllString(text, "<$0>")
		}
		require.Equal(t, want, text, terms)
	}
}

// TestRacyTimes: a file that changed within a tick of the clock of file times is searched again.
func TestRacyTimes(t *testing.T) {
	for racy, want := range map[bool][]string{true: {"two"}, false: nil} {
		mem := sessiontest.Memory(t, []byte(sessiontest.Header+sessiontest.Entry("one", "")))
		s := New(SearchedSessions{Files: &storagetest.Stopped{Storage: mem, At: storagetest.Ticking(racy)}})
		require.Empty(t, look(t, s, "two"))
		require.NoError(t, mem.WriteFile(sessiontest.FileName, []byte(sessiontest.Header+sessiontest.Entry("two", ""))))
		require.Equal(t, want, look(t, s, "two"), "racy: %v", racy)
	}
}
