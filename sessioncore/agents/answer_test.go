package agents

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// TestLaterDay: an answer that ends on a later day than it began, in UTC or in local time, says when.
func TestLaterDay(t *testing.T) {
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	const day = "2026-03-30T"
	for _, c := range []struct {
		zone        int // in hours
		first, last string
		later       bool
	}{
		{0, day + "14:59:00.000Z", day + "15:01:00.000Z", false},
		{9, day + "14:59:00.000Z", day + "15:01:00.000Z", true}, // midnight in Tokyo
		{9, day + "14:59:59.999Z", day + "15:00:00.000Z", true},
		{9, day + "14:59:00.000Z", day + "14:59:59.999Z", false},
		{9, day + "15:00:00.000Z", day + "15:01:00.000Z", false},
		{9, day + "23:59:59.999Z", "2026-03-31T00:00:00.000Z", true}, // midnight in UTC
		{-8, day + "07:59:00.000Z", day + "08:00:00.000Z", true},
		{0, day + "00:00:00.000Z", day + "23:59:59.999Z", false},
		{0, "2026-03-31T00:01:00.000Z", day + "23:59:00.000Z", false}, // a clock that was put back
		{0, "nothing", day + "23:59:00.000Z", false},
		{0, day + "23:59:00.000Z", "nothing", false},
	} {
		time.Local = time.FixedZone("local", c.zone*60*60)
		var want int64
		if c.later {
			at, err := time.Parse(time.RFC3339, c.last)
			require.NoError(t, err)
			want = at.UnixMilli()
		}
		first := rawjson.Value(`"` + c.first + `"`)
		last := rawjson.Value(`"` + c.last + `"`)
		require.Equal(t, want, laterDay(first, last), "%+v", c)
	}
}

// TestIsLaterDay: a time is on a later day if the calendar of its zone says so, in days of any length.
func TestIsLaterDay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	changes := []time.Time{ // of clocks, in Berlin and on Lord Howe
		time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC),
		time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC),
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for range 20_000 {
			change := changes[rnd.IntN(len(changes))]
			fromChange := time.Duration(rnd.Int64N(int64(72*time.Hour))) - 36*time.Hour
			length := time.Duration(rnd.Int64N(int64(50 * time.Hour)))
			start := change.Add(fromChange)
			ended := start.Add(length)
			firstDay := start.In(zone).Format(time.DateOnly)
			lastDay := ended.In(zone).Format(time.DateOnly)
			want := firstDay < lastDay
			require.Equal(t, want, isLaterDay(start.UnixMilli(), ended.UnixMilli(), zone), "%s %s %s", name, start, ended)
		}
	}
}
