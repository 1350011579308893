package rawjson

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// Value is the text of one validated JSON value without white space around it, or nil if it is
// absent. Methods neither copy nor recurse, unless stated.
type Value []byte

// IsObject reports whether v is an object.
func (v Value) IsObject() bool { return len(v) > 0 && v[0] == '{' }

// IsArray reports whether v is an array.
func (v Value) IsArray() bool { return len(v) > 0 && v[0] == '[' }

// IsString reports whether v is a string.
func (v Value) IsString() bool { return len(v) > 0 && v[0] == '"' }

// IsNumber reports whether v is a number.
func (v Value) IsNumber() bool {
	if len(v) == 0 {
		return false
	}
	isDigit := v[0] >= '0' && v[0] <= '9'
	return isDigit || v[0] == '-'
}

// IsNull reports whether v is null. It returns false for an absent value.
func (v Value) IsNull() bool { return len(v) > 0 && v[0] == 'n' }

// IsTrue reports whether v is true.
func (v Value) IsTrue() bool { return string(v) == "true" }

// Missing reports whether v is absent or null, like the left operand of JavaScript's ??.
func (v Value) Missing() bool { return len(v) == 0 || v[0] == 'n' }

// Text returns the text of a string as WTF-8. ok is false if v is not a string.
func (v Value) Text() (text string, ok bool) {
	decoded, ok := v.Bytes()
	return string(decoded), ok
}

// Bytes is like Text, but does not copy the text if the file has it unescaped and in ASCII.
func (v Value) Bytes() (text []byte, ok bool) {
	if !v.IsString() {
		return nil, false
	}
	noteWork(len(v))
	body := v[1 : len(v)-1]
	for _, c := range body {
		if c == '\\' || c >= 0x80 {
			return AppendDecoded(nil, body), true
		}
	}
	return body, true
}

// longestEscape is how many bytes of the file a byte of text takes at most, as \u0041.
const longestEscape = 6

// Is reports whether v is a string with the text want.
func (v Value) Is(want string) bool {
	if !v.IsString() {
		return false
	}
	body := v[1 : len(v)-1]
	if len(body) > longestEscape*len(want) {
		return false
	}
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body) == want
	}
	text, _ := v.Text()
	return text == want
}

// Member returns the last member of object v with that key, or nil, also for other values.
func (v Value) Member(key string) Value {
	var found Value
	for m := range v.EachMember {
		if m.KeyIs(key) {
			found = m.Value
		}
	}
	return found
}

// Member is a member of an object: its key and value, and their position in the object's text.
type Member struct {
	Key        Value // with its quotes
	Value      Value
	start, End int // of key and value, in the object's text
}

// KeyIs reports whether the key is key, however it is escaped.
func (m Member) KeyIs(key string) bool { return m.Key.Is(key) }

// EachMember calls f for each member of a validated object in order until f returns false.
func (v Value) EachMember(f func(Member) bool) {
	if v.IsObject() {
		var s Scanner
		s.eachMember(v, 0, f)
	}
}

// eachMember is EachMember for the object at v[i]. It returns the offset after the object if f never
// returned false. The results of scans are not checked, as v is valid.
func (s *Scanner) eachMember(v Value, i int, f func(Member) bool) int {
	for i = SkipSpace(v, i+1); v[i] != '}'; {
		m := Member{start: i}
		keyEnd, _ := s.SkipString(v, i+1)
		m.Key = v[i:keyEnd]
		noteWork(len(m.Key))
		i = SkipSpace(v, keyEnd)
		i = SkipSpace(v, i+1) // after the colon
		m.End, _ = s.SkipValue(v, i)
		m.Value = v[i:m.End]
		if !f(m) {
			break
		}
		i = SkipSpace(v, m.End)
		if v[i] == ',' {
			i = SkipSpace(v, i+1)
		}
	}
	return i + 1
}

// EachObject is EachElement that also passes the members of an element that is an object. It makes
// one pass instead of two. The members are valid only during the call, and the memory is empty after
// it, as they are parts of v.
func (v Value) EachObject(memory []Member, f func(element Value, members []Member) bool) {
	if !v.IsArray() {
		return
	}
	defer clear(memory[:cap(memory)])
	var s Scanner
	i := SkipSpace(v, 1)
	for v[i] != ']' {
		start := i
		members := memory[:0]
		if v[i] == '{' {
			i = s.eachMember(v, i, func(m Member) bool {
				members = append(members, m)
				return true
			})
		} else {
			i, _ = s.SkipValue(v, i)
		}
		if !f(v[start:i], members) {
			return
		}
		memory = members
		i = SkipSpace(v, i)
		if v[i] == ',' {
			i = SkipSpace(v, i+1)
		}
	}
}

// EachElement calls f for each element of an array and its offset, in order, until f returns false.
func (v Value) EachElement(f func(element Value, offset int) bool) {
	if !v.IsArray() {
		return
	}
	var s Scanner
	i := SkipSpace(v, 1)
	for v[i] != ']' {
		end, _ := s.SkipValue(v, i)
		if !f(v[i:end], i) {
			return
		}
		i = SkipSpace(v, end)
		if v[i] == ',' {
			i = SkipSpace(v, i+1)
		}
	}
}

// OffsetIn returns the offset of v, a slice of text, in text: the difference of their capacities,
// which have the same end. It is not for a copy of v, or one with a smaller capacity.
func (v Value) OffsetIn(text Value) int { return cap(text) - cap(v) }

// Truthy reports whether JavaScript converts v to true.
func (v Value) Truthy() bool {
	switch {
	case len(v) == 0, v[0] == 'n', v[0] == 'f', string(v) == `""`: // absent, null, false, empty
		return false
	case v.IsNumber():
		f, _ := strconv.ParseFloat(string(v), 64)
		return f != 0
	}
	return true
}

// AsKey returns the string that JavaScript makes of v in a key. Arrays keep their JSON text.
func (v Value) AsKey() string {
	switch {
	case len(v) == 0:
		return "undefined"
	case v.IsString():
		text, _ := v.Text()
		return text
	case v.IsObject():
		return "[object Object]"
	}
	return string(v)
}

// Kinds is a set of the kinds of JSON values.
type Kinds uint8

// The kinds.
const (
	String Kinds = 1 << iota
	Number
	Bool
	Object
	Array
	Null
)

var kindNames = [...]string{"a string", "a number", "true or false", "an object", "an array", "null"}

// String returns the kinds for people to read, as in "a string or null".
func (k Kinds) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// Kind returns the kind of a value, 0 for nil.
func (v Value) Kind() Kinds {
	switch {
	case len(v) == 0:
		return 0
	case v.IsString():
		return String
	case v.IsObject():
		return Object
	case v.IsArray():
		return Array
	case v[0] == 'n':
		return Null
	case v[0] == 't' || v[0] == 'f':
		return Bool
	}
	return Number
}

// Keys, roles and types are in camelCase or in snake_case (docs/design.md section 9). Code that
// shows them accepts both, in any dialect.

// Name returns the member's key in camelCase.
func (m Member) Name() string {
	text, _ := m.Key.Bytes()
	return CamelCase(string(text))
}

// CamelName is Name without a copy, where the file has the name as it is.
func (m Member) CamelName() []byte {
	name := m.Key[1 : len(m.Key)-1]
	if bytes.IndexByte(name, '_') < 0 && bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	return []byte(m.Name())
}

// longestName is longer than any name in the format, in bytes.
const longestName = 64

// CamelCase converts snake_case to camelCase. The dialects differ in nothing else.
func CamelCase(name string) string {
	for len(name) <= longestName {
		i := strings.IndexByte(name, '_')
		if i < 1 || i+1 == len(name) {
			break
		}
		initial := strings.ToUpper(name[i+1 : i+2])
		name = name[:i] + initial + name[i+2:]
	}
	return name
}

// AnyOf returns the value of the first of the keys that the object has, nil if it has none of them.
func (v Value) AnyOf(keys ...string) Value {
	for _, key := range keys {
		found := v.Member(key)
		if found != nil {
			return found
		}
	}
	return nil
}

// AppendNumber appends a double like JSON.stringify: the shortest text that reads back as the same
// double, never -0, and null if it is not finite.
func AppendNumber(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return append(dst, "null"...)
	}
	text, _ := json.Marshal(f + 0) // -0 + 0 is 0; a finite double cannot fail
	return append(dst, text...)
}

// maxTime is the maximum distance of a JavaScript Date from the epoch, in milliseconds.
const maxTime = 8.64e15

// timeOf parses an entry's timestamp, in milliseconds since the epoch: a number of milliseconds, an
// RFC 3339 time with or without fraction and zone, or a date. Like the client, it takes a time
// without a zone as local and a date as UTC (docs/format.md, Loading). ok is false for other
// values.
func timeOf(v Value) (ms int64, ok bool) {
	switch {
	case v.IsString():
		ms, ok = clientTime(v[1 : len(v)-1])
		if ok {
			return ms, true
		}
		text, _ := v.Bytes()
		return parseTime(text)
	case v.IsNumber():
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || math.Abs(f) > maxTime {
			return 0, false
		}
		return int64(f), true
	}
	return 0, false
}

// clientTime is parseTime for a time in the form of clients, TimestampLayout, of any zone. ok is false for most others. It
// allocates nothing, as such a time is in every entry.
func clientTime(text []byte) (ms int64, ok bool) {
	hasForm := len(text) == len(TimestampLayout) && text[len(layoutLocal)] == '.'
	if !hasForm {
		return 0, false
	}
	var t time.Time
	err := t.UnmarshalText(text)
	if err != nil {
		return 0, false
	}
	return t.UnixMilli(), true
}

// Layouts of the times that parseTime parses. Fractions of a second need no layouts of their own.
const (
	layoutZone  = "2006-01-02T15:04:05Z07:00"
	layoutLocal = "2006-01-02T15:04:05"
	layoutDate  = "2006-01-02"
)

// maxTimeText is longer than any written time: RFC 3339 with nanoseconds has 35 bytes.
const maxTimeText = 64

// parseTime is timeOf for the text of a string.
func parseTime(text []byte) (ms int64, ok bool) {
	if len(text) > maxTimeText || len(text) < len(layoutDate) {
		return 0, false
	}
	s := string(text)
	if len(s) == len(layoutDate) {
		t, err := time.Parse(layoutDate, s)
		if err != nil {
			return 0, false
		}
		return t.UnixMilli(), true
	}
	separator := s[len(layoutDate)] // RFC 3339 allows all three
	isSeparator := strings.IndexByte("Tt ", separator) >= 0
	hasComma := strings.IndexByte(s, ',') >= 0 // time.Parse would accept a fraction behind it
	if !isSeparator || hasComma {
		return 0, false
	}
	s = s[:len(layoutDate)] + "T" + s[len(layoutDate)+1:]
	s = strings.ToUpper(s) // the z of the zone
	t, err := time.Parse(layoutZone, s)
	if err != nil {
		t, err = time.ParseInLocation(layoutLocal, s, time.Local)
	}
	if err != nil {
		return 0, false
	}
	return t.UnixMilli(), true
}

// TimeForm is the form of a file's times. Added times keep it for readers of one form.
type TimeForm uint8

// The forms.
const (
	TimeZulu     TimeForm = iota // "2026-02-16T10:20:30.000Z"
	TimeOffset                   // "2026-02-16T10:20:30.000+00:00", as Python writes UTC
	timeLocal                    // "2026-02-16T10:20:30.000": local time, as Python writes a time without a zone
	timeSeconds                  // 1771237230
	timeFraction                 // 1771237230.123
	timeMillis                   // 1771237230123
)

// TimestampLayout is the time.Format layout of times written by omp: ISO 8601, UTC, milliseconds.
const TimestampLayout = "2006-01-02T15:04:05.000Z"

// Append appends t as JSON in the form f, truncated to milliseconds, or seconds without fractions.
func (f TimeForm) Append(dst []byte, t time.Time) []byte {
	switch f {
	case TimeOffset:
		return AppendQuoted(dst, t.UTC().Format("2006-01-02T15:04:05.000-07:00"))
	case timeLocal:
		return AppendQuoted(dst, t.Local().Format("2006-01-02T15:04:05.000"))
	case timeSeconds:
		return strconv.AppendInt(dst, t.Unix(), 10)
	case timeFraction:
		return strconv.AppendFloat(dst, float64(t.UnixMilli())/1000, 'f', 3, 64)
	case timeMillis:
		return strconv.AppendInt(dst, t.UnixMilli(), 10)
	}
	return AppendQuoted(dst, t.UTC().Format(TimestampLayout))
}

// ReadTimestamp parses a timestamp as the client does. ms is in milliseconds since the epoch.
func ReadTimestamp(v Value) (ms int64, form TimeForm, ok bool) {
	ms, ok = timeOf(v)
	return ms, TimeZulu, ok
}

// AppendDate appends the JSON of JavaScript's new Date(v).getTime(), null for NaN. It supports
// strings that ReadTimestamp parses, years, and short lists of one element.
func AppendDate(dst []byte, v Value) []byte {
	ms, ok := timeOf(dateOf(v))
	if !ok {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, ms, 10)
}

// dateOf returns the value, a string or a number of milliseconds, that JavaScript makes of v in new Date(v), or another
// value that is no time. JavaScript takes a list as the text of its element, so that a number in a list is a year.
func dateOf(v Value) Value {
	isInList := v.IsArray()
	if isInList {
		v = onlyElement(v)
	}
	switch {
	case isInList && v.IsNumber():
		v = AppendQuoted(nil, string(v))
	case isInList:
	case v.IsNull(), string(v) == "false":
		return Value("0")
	case v.IsTrue():
		return Value("1")
	}
	isYear := v.IsString() && len(v) == len(`"2006"`)
	if !isYear {
		return v
	}
	year, _ := v.Text()
	return AppendQuoted(nil, year+"-01-01")
}

// onlyElement returns the only element of a short list, or of lists in a list. It returns nil for an empty list and one of
// several elements, and v itself if it is long.
func onlyElement(v Value) Value {
	for v.IsArray() && len(v) <= maxTimeText {
		var only Value
		for element := range v.EachElement {
			if only != nil {
				return nil
			}
			only = element
		}
		v = only
	}
	return v
}

// maxSeconds is the limit below which a number means seconds since the epoch, as from Python's
// time.time(): as seconds in the year 5138, as milliseconds in 1973.
const maxSeconds = 1e11

// ReadOperatorTimestamp parses a timestamp of the operator dialect: a number of seconds or
// milliseconds since the epoch, or a string. form is the form of the value, for more times in the file.
func ReadOperatorTimestamp(v Value) (ms int64, form TimeForm, ok bool) {
	switch {
	case v.IsString():
		ms, ok = timeOf(v)
		return ms, textForm(string(v[1 : len(v)-1])), ok
	case !v.IsNumber():
		return 0, 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0, 0, false
	}
	form = timeMillis
	if math.Abs(f) < maxSeconds {
		f *= 1000
		form = timeSeconds
		if strings.ContainsAny(string(v), ".eE") {
			form = timeFraction
		}
	}
	f = math.Round(f)
	if math.Abs(f) > maxTime {
		return 0, 0, false
	}
	return int64(f), form, true
}

// textForm returns the form of a time in a string, by the text after the time of day.
func textForm(text string) TimeForm {
	at := strings.IndexByte(text, 'T')
	switch {
	case strings.HasSuffix(text, "Z"):
		return TimeZulu
	case at >= 0 && !strings.ContainsAny(text[at:], "+-"):
		return timeLocal
	}
	return TimeOffset
}
