package search

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestSpans: the spans that texts name, in local time. Days on which the clock changes have 23 or 25 hours.
func TestSpans(t *testing.T) {
	table, err := os.ReadFile("testdata/spans.txt")
	require.NoError(t, err)
	for row := range strings.Lines(string(table)) {
		row, _, _ = strings.Cut(row, "#")
		c := strings.Fields(row)
		if len(c) == 0 {
			continue
		}
		zone, err := time.LoadLocation(c[0])
		require.NoError(t, err)
		now, err := time.Parse(time.RFC3339, c[1])
		require.NoError(t, err)
		text := c[2]
		s, err := ParseSpan(text, now.In(zone))
		require.NoError(t, err, row)
		require.Equal(t, c[3:], []string{s.Begin.UTC().Format(time.RFC3339), s.End.UTC().Format(time.RFC3339)}, row)
		require.Equal(t, text[0] > '9' || len(text) == 2, s.Relative, row)
	}
	for _, text := range []string{"", "d", "w", "-1d", "1.5d", "7", "70000d", "tomorrow", "mond", "2026", "2026-13", "2026-02-30", "2026-01-31T25:00",
		"15:04", "7dd", "now"} {
		_, err := ParseSpan(text, time.Now())
		require.ErrorContains(t, err, "a date such as 2026-01-31", text)
	}
}

// TestOldFiles: a query with after: opens no file that was modified more than a day before.
func TestOldFiles(t *testing.T) {
	mem := memory.New()
	after := time.Date(2026, 3, 10, 0, 0, 0, 0, time.Local)
	for hours := range 72 {
		name := fmt.Sprintf("p/%02d.jsonl", hours)
		said := `{"type":"message","id":"a","timestamp":"2026-03-11T10:00:00.000Z","message":{"role":"user","content":"tide"}}` + "\n"
		require.NoError(t, mem.WriteFile(name, []byte(sessiontest.Header+said)))
		require.NoError(t, mem.Chtimes(name, after.Add(-time.Duration(hours)*time.Hour)))
	}
	var opened atomic.Int64
	files := &watched{mem, func(string) error { opened.Add(1); return nil }}
	for _, text := range []string{"tide after:2026-03-10", "after:2026-03-10"} {
		opened.Store(0)
		r, err := New(SearchedSessions{Files: files}).Search(t.Context(), query(t, text))
		require.NoError(t, err)
		require.Len(t, r.Hits, 1, "the others are copies")
		require.Equal(t, 24, r.Hits[0].Copies)
		require.EqualValues(t, 2*25, opened.Load(), "to look at the bytes, and at the entries")
	}
	opened.Store(0)
	require.Empty(t, look(t, New(SearchedSessions{Files: files}), "moon before:2026-03-10"))
	require.EqualValues(t, 72, opened.Load())
}

// TestRelativeQuery: after: and before: begin with the day that a query names, and what a relative one found is not
// remembered: tomorrow it is another question.
func TestRelativeQuery(t *testing.T) {
	now := time.Now()
	at := func(days int) string {
		return now.AddDate(0, 0, days).UTC().Format(`"timestamp":"2006-01-02T15:04:05.000Z",`)
	}
	entry := func(id string, days int) string {
		return `{"type":"message","id":"` + id + `",` + at(days) + `"message":{"role":"user","content":"tide"}}` + "\n"
	}
	s := New(SearchedSessions{Files: sessiontest.Memory(t, []byte(sessiontest.Header+entry("old", -8)+entry("week", -7)+entry("yesterday", -1)+entry("today", 0)))})
	today, weekday := now.Format(time.DateOnly), now.Weekday().String()
	for query, want := range map[string][]string{
		"tide after:7d": {"today", "yesterday", "week"}, "tide before:7d": {"old"}, "tide after:1w before:today": {"yesterday", "week"},
		"tide after:today": {"today"}, "tide before:yesterday": {"week", "old"}, "after:" + weekday: {"today"}, "after:" + today: {"today"},
	} {
		require.Equal(t, want, look(t, s, query), query)
	}
	for _, c := range []struct {
		query string
		again int64 // files that are read when the query is asked again
	}{{"tide after:2026-01-01", 0}, {"tide after:7d", 1}, {"tide before:tuesday", 1}} {
		look(t, s, c.query)
		before := s.FilesRead()
		look(t, s, c.query)
		require.Equal(t, c.again, s.FilesRead()-before, c.query)
	}
}

// TestFirstMoment: after: and before: meet at the first moment of the day, in local time: it is in the day, and the moment
// before is not.
func TestFirstMoment(t *testing.T) {
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	for hours, midnight := range map[int]string{0: "2026-03-02T00:00:00", 9: "2026-03-01T15:00:00"} {
		time.Local = time.FixedZone("local", hours*60*60)
		first, err := time.Parse("2006-01-02T15:04:05", midnight)
		require.NoError(t, err)
		entry := func(id string, at time.Time) string {
			return `{"type":"message","id":"` + id + `","timestamp":"` + at.Format("2006-01-02T15:04:05.000Z") + `","message":{"role":"user","content":"tide"}}` + "\n"
		}
		s := one(t, entry("before", first.Add(-time.Millisecond)), entry("first", first), entry("last", first.Add(24*time.Hour-time.Millisecond)))
		for query, want := range map[string][]string{
			"before:2026-03-02": {"before"}, "after:2026-03-02": {"last", "first"}, "before:2026-03-01": nil, "after:2026-03-03": nil,
			"tide after:2026-03-02 before:2026-03-03": {"last", "first"}, "before:2026-03-03 after:2026-03-01": {"last", "first", "before"},
			"before:2026-03-02T00:00": {"before"}, "after:2026-03-02T00:00 before:2026-03-02T00:01": {"first"},
		} {
			require.Equal(t, want, look(t, s, query), "%s, %d hours from UTC", query, hours)
		}
	}
}
