package search

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestSpans: the spans that texts name, in local time. Days on which the clock changes have 23 or 25 hours.
func TestSpans(t *testing.T) {
	for _, c := range []struct{ zone, now, text, begin, end string }{
		{"UTC", "2026-11-27T12:00:00Z", "2026-01-31", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"},
		{"UTC", "2026-11-27T12:00:00Z", "2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"UTC", "2026-11-27T12:00:00Z", "2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"UTC", "2026-11-27T12:00:00Z", "friday", "2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z"},
		{"UTC", "2026-11-27T12:00:00Z", "Sat", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"UTC", "2026-11-27T12:00:00Z", "0d", "2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z"},
		{"America/New_York", "2026-11-28T02:00:00Z", "today", "2026-11-27T05:00:00Z", "2026-11-28T05:00:00Z"},
		{"America/New_York", "2026-11-28T02:00:00Z", "yesterday", "2026-11-26T05:00:00Z", "2026-11-27T05:00:00Z"},
		{"America/New_York", "2026-03-09T12:00:00Z", "yesterday", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"America/New_York", "2026-11-27T12:00:00Z", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"America/New_York", "2026-11-04T12:00:00Z", "7d", "2026-10-28T04:00:00Z", "2026-10-29T04:00:00Z"},
		{"America/New_York", "2026-11-04T12:00:00Z", "sunday", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"America/New_York", "2026-11-27T12:00:00Z", "2026-01-31T15:04", "2026-01-31T20:04:00Z", "2026-01-31T20:05:00Z"},
		{"America/New_York", "2026-11-27T12:00:00Z", "2026-01-31T15:04:05", "2026-01-31T20:04:05Z", "2026-01-31T20:04:06Z"},
		{"America/New_York", "2026-11-27T12:00:00Z", "2026-01-31T15:04:05+02:00", "2026-01-31T13:04:05Z", "2026-01-31T13:04:06Z"},
		{"Europe/Berlin", "2026-04-07T12:00:00Z", "2w", "2026-03-23T23:00:00Z", "2026-03-30T22:00:00Z"},
		{"Europe/Berlin", "2026-11-27T12:00:00Z", "2026-10", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"},
		{"Europe/Berlin", "2026-11-27T23:30:00Z", "today", "2026-11-27T23:00:00Z", "2026-11-28T23:00:00Z"},
		{"America/Sao_Paulo", "2018-11-05T12:00:00Z", "2018-11-04", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}, // begins at 1:00
		{"America/Havana", "2026-11-27T12:00:00Z", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},    // begins twice
		{"Asia/Amman", "2026-11-27T12:00:00Z", "2021-10-29", "2021-10-28T21:00:00Z", "2021-10-29T22:00:00Z"},        // likewise
	} {
		zone, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		now, err := time.Parse(time.RFC3339, c.now)
		require.NoError(t, err)
		s, err := ParseSpan(c.text, now.In(zone))
		require.NoError(t, err, c.text)
		require.Equal(t, c.begin, s.Begin.UTC().Format(time.RFC3339), "%+v", c)
		require.Equal(t, c.end, s.End.UTC().Format(time.RFC3339), "%+v", c)
		require.Equal(t, c.text[0] > '9' || len(c.text) == 2, s.Relative, "%+v", c)
	}
	for _, text := range []string{"", "d", "w", "-1d", "1.5d", "7", "70000d", "tomorrow", "mond", "2026", "2026-13", "2026-02-30", "2026-01-31T25:00",
		"15:04", "7dd", "now"} {
		_, err := ParseSpan(text, time.Now())
		require.ErrorContains(t, err, "a date such as 2026-01-31", text)
	}
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
	s := New(Sessions{Files: sessiontest.Memory(t, []byte(sessiontest.Header+entry("old", -8)+entry("week", -7)+entry("yesterday", -1)+entry("today", 0)))})
	today, weekday := now.Format(time.DateOnly), now.Weekday().String()
	for query, want := range map[string][]string{
		"tide after:7d": {"today", "yesterday", "week"}, "tide before:7d": {"old"}, "tide after:1w before:today": {"yesterday", "week"},
		"tide after:today": {"today"}, "tide before:yesterday": {"week", "old"}, "after:" + weekday: {"today"}, "after:" + today: {"today"},
	} {
		require.Equal(t, want, look(t, s, query), query)
	}
	read := func(text string) int64 {
		before := s.FilesRead()
		_, err := s.Search(context.Background(), query(t, text))
		require.NoError(t, err)
		return s.FilesRead() - before
	}
	read("tide after:2026-01-01")
	require.Zero(t, read("tide after:2026-01-01"), "an absolute date")
	require.Equal(t, int64(1), read("tide after:7d"))
	require.Equal(t, int64(1), read("tide after:7d"))
	require.Equal(t, int64(1), read("tide before:tuesday"))
	require.Equal(t, int64(1), read("tide before:tuesday"))
}
