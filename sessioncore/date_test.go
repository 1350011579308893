package sessioncore

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
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
	ms, ok := timeOf(value(in))
	if !ok {
		ms = unreadable
	}
	assert.Equal(t, want, ms, "%s", in)
}

func quoted(text string) string { return string(appendQuoted(nil, text)) }

// dateCases are texts and what the client's new Date(text).getTime() gives where local time is UTC.
var dateCases = []struct {
	text string
	ms   int64
}{
	// ISO 8601: lengths, fractions, letters of either case
	{"2026-01-05T09:00:00.000Z", 1767603600000},
	{"2026-01-05T09:00:00Z", 1767603600000},
	{"2026-01-05T09:00Z", 1767603600000},
	{"2026-01-05", 1767571200000},
	{"2026-01", 1767225600000},
	{"2026", 1767225600000},
	{"2026-01-05T09:00", 1767603600000},
	{"2026-01-05T09:00:00", 1767603600000},
	{"2026-01-05T09:00:00.1Z", 1767603600100},
	{"2026-01-05T09:00:00.12Z", 1767603600120},
	{"2026-01-05T09:00:00.1234Z", 1767603600123},
	{"2026-01-05T09:00:00.9999Z", 1767603600999},
	{"2026-01-05T09:00:00.0006Z", 1767603600000},
	{"2026-01-05T09:00:00.000999999999999999Z", 1767603600999},
	{"2026-01-05T09:00:00.12345678901234567890Z", 1767603600123},
	{"2026-01-05t09:00:00.000z", 1767603600000},
	// ISO 8601: offsets, and what may follow
	{"2026-01-05T09:00:00+01:00", 1767600000000},
	{"2026-01-05T09:00:00-01:00", 1767607200000},
	{"2026-01-05T09:00:00+0100", 1767600000000},
	{"2026-01-05T09:00:00.000+05:30", 1767583800000},
	{"2026-01-05T09:00:00+23:59", 1767517260000},
	{" 2026-01-05", 1767571200000},
	{"2026-01-05 ", 1767571200000},
	{"2026-01-05T09:00:00Z\u0000", 1767603600000},
	{"2026-005", 1777593600000},
	// ISO 8601: bounds
	{"2026-01-05T24:00:00Z", 1767657600000},
	{"2026-01-05T24:00Z", 1767657600000},
	{"2026-02-29T00:00:00Z", 1772323200000},
	{"2026-02-31T00:00:00Z", 1772496000000},
	{"+002026-01-05T09:00:00Z", 1767603600000},
	{"-000001-01-01T00:00:00Z", -62198755200000},
	{"+275760-09-13T00:00:00.000Z", 8640000000000000},
	{"-271821-04-20T00:00:00.000Z", -8640000000000000},
	{"0099-01-01T00:00:00Z", -59042995200000},
	{"9999-12-31T23:59:59.999Z", 253402300799999},
	{"12026-01-05", 317337091200000},
	// almost ISO 8601
	{"2026-1-5", 1767571200000},
	{"2026/01/05", 1767571200000},
	{"2026-01-05Z", 1767571200000},
	{"2026-01-05 09:00:00", 1767603600000},
	{"2026-01-05 09:00:00Z", 1767603600000},
	{"2026-01-05 09:00:00.123456Z", 1767603600123},
	{"2026-01-05 09:00:00 Z", 1767603600000},
	{"2026-01-05 9:00", 1767603600000},
	{"2026-01-05 09:00:00 +0100", 1767600000000},
	{"2026-01-05 09:00:00+01", 1767600000000},
	{"2026-01-05 09:00:00.123 UTC", 1767603600123},
	{"2026-01-05 09:00:00 EST", 1767621600000},
	{"2026-01-05 24:00:00", 1767657600000},
	// what mail, servers, JavaScript and people write
	{"Mon, 05 Jan 2026 09:00:00 GMT", 1767603600000},
	{"Mon, 05 Jan 2026 09:00:00 -0500", 1767621600000},
	{"Monday, 05-Jan-26 09:00:00 GMT", 1767603600000},
	{"Mon Jan 05 2026 09:00:00 GMT+0100 (Central European Standard Time)", 1767600000000},
	{"Mon Jan  5 09:00:00 2026", 1767603600000},
	{"Mon Jan 5 09:00:00 UTC 2026", 1767603600000},
	{"mon, 05 jan 2026 09:00:00 gmt", 1767603600000},
	{"Jan 5, 2026 09:00:00", 1767603600000},
	{"January 5, 2026 9:00 AM", 1767603600000},
	{"January 5, 2026 9:00:00 PM", 1767646800000},
	{"5 January 2026", 1767571200000},
	{"Jan 2026", 1767225600000},
	{"2026-Jan-05", 1767571200000},
	{"Jan. 5, 2026", 1767571200000},
	{"Feb 30 2026", 1772409600000},
	{"1/5/2026, 9:00:00 PM", 1767646800000},
	{"1/5/49", 2493417600000},
	{"1/5/50", -630806400000},
	{"5.1.2026", 1777593600000},
	{"05.01.2026 09:00:00", 1777626000000},
	{"Jan 5 2026 (x)", 1767571200000},
	{"Jan 5 2026 09:00:00 PDT", 1767628800000},
	{"Jan 5 2026 09:00:00 +01:00", 1767600000000},
	{"Jan 5 2026 09:00:00.250", 1767603600250},
	// numbers and words
	{"-1", 978307200000},
	{"0", 946684800000},
	{"12", 1007164800000},
	{"32", 1956528000000},
	{"50", -631152000000},
	{"100", -59011459200000},
	{"hello 5", 988675200000},
	{"\uff12\uff10\uff12\uff16-01-05", 978652800000},
	// white space, as the client has it
	{"Jan 5\u00a02026", 1767571200000},
	{"1/5/2026 9:00\f", 1767603600000},
	// offsets are reckoned in 32 bits, and may bring a year back into range
	{"275761-01-01 00:00:00 +100000:00", 8639649504000000},
	{"275761-01-01 00:00:00 +500000:00", 8638209504000000},
}

// noDates are texts that it does not read.
var noDates = []string{
	"2026-01-05T09Z", "2026-01-05T09", "2026-01-05T", "2026-01-05T09:00:00.Z", "2026-01-05T09:00:00,123Z",
	"2026-01-05T09:00:00+01", "2026-01-05T09:00:00+1:00", "2026-01-05T09:00:00+24:00",
	"2026-01-05T09:00:00+14:60", "2026-01-05T09:00:00+01:00:00", "2026-01-05+01:00",
	"2026-01-05T09:00:00 Z", "2026-01-05T09:00:00ZZ", "2026-01-05T09:00:00Z[UTC]",
	" 2026-01-05T09:00:00Z", "2026-01-05T09:00:00Z ", "2026-01-05T09:00:00Z (x)",
	"\ufeff2026-01-05T09:00:00Z", "2026-01-05T9:00:00Z", "2026-01-05T09:0:00Z", "2026-01-05T0900Z",
	"20260105T090000Z", "20260105", "2026-W01-1", "2026-01-05T24:00:00.001Z", "2026-01-05T24:00:01Z",
	"2026-01-05T25:00:00Z", "2026-01-05T23:60:00Z", "2026-01-05T23:59:60Z", "2026-02-32T00:00:00Z",
	"2026-00-01", "2026-13-01T00:00:00Z", "2026-01-00", "-000000-01-01T00:00:00Z",
	"+275760-09-13T00:00:00.001Z", "-271821-04-19T23:59:59.999Z", "10000-01-01T00:00:00Z",
	"2026-01-05 09", "2026-01-05_09:00:00", "2026-01-05 23:59:60", "January", "13/5/2026",
	"Jan 5 2026 09:00:00 CET", "Jan 5 2026 foo", "1767603600000", "13", "1e3", "item 12 2026",
	"x2026-01-05", "", "   ", "null", "Z", "09:00:00", "Jan 5\u20282026", "1/5/2026 9:00\v",
}

func TestTimeOfStrings(t *testing.T) {
	setLocal(t, "UTC")
	for _, c := range dateCases {
		checkTime(t, quoted(c.text), c.ms)
	}
	for _, text := range noDates {
		checkTime(t, quoted(text), unreadable)
	}
	checkTime(t, `"2026-01-05T09:00:00.000\u005a"`, 1767603600000)
	checkTime(t, `"2026-01-05 09:00:00 \ud800"`, unreadable)
	checkTime(t, `"(\ud800) 2026-01-05 09:00:00"`, 1767603600000)
}

func TestTimeOfOtherValues(t *testing.T) {
	setLocal(t, "UTC")
	for _, c := range []struct {
		json string
		ms   int64
	}{
		{"", unreadable}, {"null", 0}, {"true", 1}, {"false", 0}, {"0", 0}, {"-0", 0},
		{"1767603600000", 1767603600000}, {"1767603600000.9", 1767603600000}, {"-1.9", -1}, {"1e-400", 0},
		{"8.64e15", 8640000000000000}, {"8640000000000001", unreadable},
		{"-8640000000000001", unreadable}, {"1e400", unreadable}, {"{}", unreadable},
		{`{"a":"2026-01-05"}`, unreadable}, {"[]", unreadable}, {"[null]", unreadable},
		{"[5]", 988675200000}, {"[0]", 946684800000}, {"[-0]", 946684800000},
		{"[2026,1,5]", 1767571200000}, {"[ 2026 , 1 , 5 ]", 1767571200000}, {"[2026,0]", unreadable},
		{"[5,5,-0]", 957484800000}, {"[5.0,1e1]", 989452800000}, {"[0.000001,5]", 947030400000},
		{"[1e-7,5]", unreadable}, {"[1e400,5]", 988675200000}, {"[100000000000000000000]", unreadable},
		{"[1767603600000]", unreadable}, {`["2026-01-05T09:00:00Z"]`, 1767603600000},
		{`["2026-01-05T09:00:00Z",null]`, unreadable}, {`["(",1e21,") 5"]`, 988675200000},
		{"[true]", unreadable}, {"[false,5]", 988675200000}, {"[{},5]", 988675200000},
		{"[[],5]", 988675200000}, {"[[[2026],[1,5]]]", 1767571200000}, {"[[],[],[]]", unreadable},
		{strings.Repeat("[", 100_000) + "5" + strings.Repeat("]", 100_000), 988675200000},
	} {
		checkTime(t, c.json, c.ms)
	}
}

// TestTimeOfLocal: a time without a zone is local, in the past and far from now too; of a time that
// comes twice the first is meant, and one that is skipped counts by the offset before.
func TestTimeOfLocal(t *testing.T) {
	for _, c := range []struct {
		zone, text string
		ms         int64
	}{
		{"America/New_York", "Jan 5 2026", 1767589200000},
		{"America/New_York", "2026-01-05", 1767571200000}, // a date alone is UTC
		{"America/New_York", "2026-03-08 01:59:59.999", 1772953199999},
		{"America/New_York", "2026-03-08T02:30", 1772955000000},
		{"America/New_York", "2026-03-08 03:00", 1772953200000},
		{"America/New_York", "2026-11-01T01:30", 1793511000000},
		{"America/New_York", "2500-03-08T02:30", 16730955000000},
		{"America/New_York", "1850-01-01T00:00", -3786807838000},
		{"America/New_York", "+275760-09-13T00:00:00", unreadable},
		{"America/New_York", "-271821-04-20T00:00:00", -8639999982238000},
		{"Europe/Berlin", "2026-03-29T02:30", 1774747800000},
		{"Europe/Berlin", "2026-10-25T02:30", 1792888200000},
		{"Europe/Berlin", "1945-04-02T02:30", -781050600000},
		{"Europe/Berlin", "1893-04-01 00:03:00", -2422054228000},
		{"Europe/Berlin", "2400-07-01T00:00", 13585183200000},
		{"Europe/Berlin", "-271821-04-20T00:00:00", unreadable},
		{"Pacific/Apia", "2011-12-30T12:00", 1325282400000}, // a day that was left out
		{"Pacific/Apia", "1900-06-01 12:00", -2195857984000},
	} {
		t.Run(c.zone+" "+c.text, func(t *testing.T) {
			setLocal(t, c.zone)
			checkTime(t, quoted(c.text), c.ms)
		})
	}
}

// TestTimeOfAllocates: the form that clients write is read for each entry of a session.
func TestTimeOfAllocates(t *testing.T) {
	v := value(`"2026-01-05T09:00:00.000Z"`)
	assert.Zero(t, testing.AllocsPerRun(100, func() { timeOf(v) }))
}

// TestTimeOfLongText: long texts are read in one pass; anything slower would take hours here.
func TestTimeOfLongText(t *testing.T) {
	setLocal(t, "UTC")
	const n = 4 << 20
	for _, part := range []string{"(", "()", "(x) ", "x", "x ", "é", "\u3000", " ", ",", "0", "+", ")"} {
		long := strings.Repeat(part, n/len(part))
		want := int64(988675200000)
		switch part {
		case "(":
			want = unreadable // it hides all that follows
		case "x", "é": // a word right before a number
			want = unreadable
		case "0":
			want = 1115251200000
			long += "5/5/"
		}
		checkTime(t, quoted(long+"5"), want)
	}
	checkTime(t, "["+strings.Repeat("null,", n)+"5]", unreadable) // beyond maxJoined
}

// wellFormed is RFC 3339 as far as Go and the client agree on it: Go knows how long each month is and
// no hour 24.
var wellFormed = regexp.MustCompile(`^\d{4}-\d\d-([01]\d|2[0-8])T([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,9})?` +
	`(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func FuzzTimeOf(f *testing.F) {
	for _, c := range dateCases {
		f.Add(c.text)
	}
	for _, text := range append([]string{
		"1969-12-31T23:59:59.999999999-23:59", "0000-01-01T00:00:00+23:59",
		`[2026,[1,null],{"a":1},-0,"x"]`, `["\ud800",1e400]`, "1e15", "(((", "1:2:3.4 PM +5:6",
	}, noDates...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if trimmed := bytes.TrimSpace([]byte(text)); json.Valid(trimmed) {
			timeOf(value(trimmed))
		}
		v := value(quoted(text))
		ms, ok := timeOf(v)
		require.True(t, ms >= -maxTime && ms <= maxTime && (ok || ms == 0))
		decoded, _ := v.bytes()
		slow, slowOK := parseTime(decoded)
		require.Equal(t, slowOK, ok)
		require.Equal(t, slow, ms)
		if !wellFormed.MatchString(text) {
			return
		}
		want, err := time.Parse(time.RFC3339Nano, text)
		require.Equal(t, err == nil, ok, "%v", err)
		if ok {
			require.Equal(t, want.UnixMilli(), ms)
		}
	})
}
