package names

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNames: a text has one name, from which it is read back, unless the name is cut.
func TestNames(t *testing.T) {
	long := strings.Repeat("x", MaxName)
	for text, want := range map[string]string{
		"a": "a", "": "%", ".": "%2E", ".a": "%2Ea", "-a": "%2Da", "a.-b": "a.-b", "a/b": "a%2Fb", "50%": "50%25", "a~1": "a%7E1",
		"\x1f": "%1F", "\x7f": "%7F", " ": " ", "é": "é", "\u009b": "%C2%9B", "\u202e": "%E2%80%AE", "\ufffd": "\ufffd", "\xff": "%FF",
		"\xed\xa0\x80": "%ED%A0%80", "\xe2\x80": "%E2%80", long: long,
	} {
		require.Equal(t, want, FileName(text), "%q", text)
		require.False(t, TooLong([]byte(text)), "%q", text)
		got, ok := DecodeName(want)
		require.True(t, ok, want)
		require.Equal(t, text, got)
	}
	for _, text := range []string{long + "x", strings.Repeat("/", MaxName/3+1), strings.Repeat("é", MaxName)} {
		name := FileName(text)
		require.Len(t, name, MaxName+1+HashLength)
		require.True(t, TooLong([]byte(text)))
		hash, ok := CutName(name)
		require.True(t, ok)
		require.Equal(t, Hash([]byte(text)), hash)
		_, ok = DecodeName(name)
		require.False(t, ok, "it is cut")
	}
	for _, name := range []string{"", ".a", "-a", "a/b", "a~1", "%61", "a%2f", "%2", "%%", "a%", "\xff", long + "x", "%2F" + long} {
		_, ok := DecodeName(name)
		require.False(t, ok, "%q", name)
	}
	for _, name := range []string{
		"a", long + "~" + strings.Repeat("0", HashLength-1), long + "-" + strings.Repeat("0", HashLength),
		long + "~" + strings.Repeat("g", HashLength), long + "~" + strings.Repeat("A", HashLength),
	} {
		_, ok := CutName(name)
		require.False(t, ok, name)
	}
}

// TestNamesAmong: a text that is a fixed name of its directory has its first byte encoded.
func TestNamesAmong(t *testing.T) {
	fixed := []string{"current", "entry.json"}
	for text, want := range map[string]string{"current": "%63urrent", "entry.json": "%65ntry.json", "current2": "current2", "%63urrent": "%2563urrent"} {
		require.Equal(t, want, FileNameAmong(text, fixed))
		got, ok := DecodeNameAmong(want, fixed)
		require.True(t, ok, want)
		require.Equal(t, text, got)
	}
	for _, name := range []string{"current", "entry.json", "%63urrent2"} {
		_, ok := DecodeNameAmong(name, fixed)
		require.False(t, ok, name)
	}
}

// TestLineSuffix: a name ends in the number of its line, written as usual.
func TestLineSuffix(t *testing.T) {
	base, line, ok := LineSuffix("a~b~12")
	require.True(t, ok)
	require.Equal(t, "a~b", base)
	require.EqualValues(t, 12, line)
	for _, name := range []string{"a", "a~", "a~0", "a~-1", "a~+1", "a~01", "a~1x", "a~99999999999999999999"} {
		_, _, ok = LineSuffix(name)
		require.False(t, ok, name)
	}
}

// TestTitleSlot: a slot has its size, and the title is cut between code points.
func TestTitleSlot(t *testing.T) {
	for _, title := range []string{"", "x", strings.Repeat("é", 200), "x" + strings.Repeat("€", 100), strings.Repeat("\xed\xa0\x80", 90)} {
		slot := string(TitleSlot(title, "user", "2026-02-16T10:20:30.000Z"))
		require.Len(t, slot, SlotSize)
		_, rest, _ := strings.Cut(slot, `"title":"`)
		cut, _, _ := strings.Cut(rest, `"`)
		require.True(t, strings.HasPrefix(title, cut) || strings.HasPrefix(cut, `\u`), "%q", cut)
		require.Equal(t, title == "", cut == "")
		require.Equal(t, strings.ToValidUTF8(cut, "?"), cut, "no code point is cut")
	}
	require.Nil(t, TitleSlot("", strings.Repeat("x", SlotSize), ""))
}
