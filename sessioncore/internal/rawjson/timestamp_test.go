package rawjson

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones below, wherever the test runs

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unreadable stands in the tables for what is no time.
const unreadable = math.MinInt64

// setLocal makes zone the local one until the test ends.
func setLocal(t testing.TB, zone string) {
	loc, err := time.LoadLocation(zone)
	require.NoError(t, err)
	before := time.Local
	time.Local = loc
	t.Cleanup(func() { time.Local = before })
}

// checkTime compares what timeOf makes of the JSON text in with want.
func checkTime(t *testing.T, in string, want int64) {
	t.Helper()
	ms, ok := timeOf(Value(in))
	if !ok {
		ms = unreadable
	}
	assert.Equal(t, want, ms, "%s", in)
}

// quoted returns a text as JSON.
func quoted(text string) string { return string(AppendQuoted(nil, text)) }

// dates are texts and the results of the client's new Date(text).getTime() where local time is UTC.
var dates = map[string]int64{
	"2026-01-05T09:00:00.000Z": 1767603600000, "2026-01-05T09:00:00Z": 1767603600000,
	"2026-01-05T09:00:00.1Z": 1767603600100, "2026-01-05T09:00:00.1234Z": 1767603600123,
	"2026-01-05T09:00:00.9999Z": 1767603600999, "2026-01-05T09:00:00.000999999999999999Z": 1767603600000,
	"2026-01-05t09:00:00.000z": 1767603600000, "2026-01-05 09:00:00Z": 1767603600000,
	"2026-01-05T09:00:00+01:00": 1767600000000, "2026-01-05T09:00:00-01:00": 1767607200000,
	"2026-01-05T09:00:00.000+05:30": 1767583800000, "2026-01-05T09:00:00.123456+00:00": 1767603600123,
	"2026-01-05T09:00:00+23:59": 1767517260000, "2026-01-05": 1767571200000, "2026-01-05T09:00:00": 1767603600000,
	"2026-01-05T09:00:00.250": 1767603600250, "2026-01-05 09:00:00.123456": 1767603600123,
	"2024-02-29T00:00:00.000Z": 1709164800000, "0099-01-01T00:00:00Z": -59042995200000,
	"9999-12-31T23:59:59.999Z": 253402300799999,
}

// noDates are texts that are no time here, though the client's engine makes a time of some.
var noDates = []string{
	"2026-02-29T00:00:00.000Z", "2026-02-31T00:00:00Z", "2026-01-05T24:00:00Z", "2026-01-05T23:60:00.000Z", "2026-01-05T23:59:60Z",
	"2026-00-01", "2026-13-01T00:00:00.000Z", "2026-01-00", "2026-01-00T00:00:00.000Z", "2026", "2026-01", "2026-1-5", "2026/01/05",
	"2026-01-05T", "2026-01-05T09", "2026-01-05T09Z", "2026-01-05T09:00:00,123Z", "2026-01-05T09:00:00.Z", "2026-01-05T09:00:00+0100",
	" 2026-01-05T09:00:00Z", "2026-01-05T09:00:00Z ", "2026-01-05T09:00:00Z\u0000", "2026-01-05_09:00:00",
	"Mon, 05 Jan 2026 09:00:00 GMT", "Jan 5, 2026", "1/5/2026, 9:00:00 PM", "hello 5", "1767603600000", "", "   ", "null", "Z", "now",
}

// TestTimeOf: a time without a zone is local; a date alone is UTC.
func TestTimeOf(t *testing.T) {
	setLocal(t, "UTC")
	for text, ms := range dates {
		checkTime(t, quoted(text), ms)
	}
	for _, text := range noDates {
		checkTime(t, quoted(text), unreadable)
	}
	for json, ms := range map[string]int64{
		`"2026-01-05T09:00:00.000\u005a"`: 1767603600000, `"2026-01-05 09:00:00 \ud800"`: unreadable,
		"0": 0, "-0": 0, "1767603600000": 1767603600000, "1767603600000.9": 1767603600000, "-1.9": -1, "1e-400": 0,
		"8.64e15": 8640000000000000, "8640000000000001": unreadable, "-8640000000000001": unreadable, "1e400": unreadable,
		"": unreadable, "null": unreadable, "true": unreadable, "{}": unreadable, "[]": unreadable, `["2026-01-05"]`: unreadable,
	} {
		checkTime(t, json, ms)
	}
	setLocal(t, "America/New_York")
	checkTime(t, `"2026-01-05"`, 1767571200000)
	checkTime(t, `"2026-01-05T00:00:00"`, 1767589200000)
	checkTime(t, `"2026-03-08 01:59:59.999"`, 1772953199999)
	setLocal(t, "Europe/Berlin")
	checkTime(t, `"2026-07-01T00:00:00"`, 1782856800000)
}

// TestTimeOfAllocates: the form that clients write is read for each entry of a session.
func TestTimeOfAllocates(t *testing.T) {
	v := Value(`"2026-01-05T09:00:00.000Z"`)
	assert.Zero(t, testing.AllocsPerRun(100, func() { timeOf(v) }))
}

func FuzzTimeOf(f *testing.F) {
	more := []string{"1969-12-31T23:59:59.999999999-23:59", "0000-01-01T00:00:00+23:59", `["\ud800",1e400]`, "1e15"}
	for _, text := range slices.AppendSeq(slices.Concat(noDates, more), maps.Keys(dates)) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trimmed := bytes.TrimSpace([]byte(text))
		if json.Valid(trimmed) {
			date := AppendDate(nil, Value(trimmed))
			require.True(t, json.Valid(date))
		}
		v := Value(quoted(text))
		ms, ok := timeOf(v)
		require.True(t, ms >= -maxTime && ms <= maxTime)
		require.True(t, ok || ms == 0)
		decoded, _ := v.Bytes()
		slow, slowOK := parseTime(decoded)
		require.Equal(t, slowOK, ok)
		require.Equal(t, slow, ms)
		want, err := time.Parse(time.RFC3339Nano, text)
		isRead := err == nil && len(text) <= maxTimeText
		hasComma := strings.ContainsRune(text, ',') // only time.Parse accepts it
		if isRead && !hasComma {
			require.True(t, ok)
			require.Equal(t, want.UnixMilli(), ms)
		}
	})
}
