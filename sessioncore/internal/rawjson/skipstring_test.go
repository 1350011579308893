package rawjson

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// skipStringByBytes is SkipString a byte at a time.
func skipStringByBytes(s *Scanner, b []byte, i int) (int, ScanStatus) {
	for i < len(b) {
		c := b[i]
		switch {
		case c == '"':
			return i + 1, OK
		case c == '\\':
			n, st := EscapeLen(b[i:])
			if st != OK {
				return i, st
			}
			i += n
		case c < 0x20:
			return i, Bad
		default:
			if c >= 0x80 {
				s.Flags |= HasHighBytes
			}
			i++
		}
	}
	return i, Short
}

// eachVariant calls f for each way to skip blocks: the one that all machines have, and vectors if this one can.
func eachVariant(f func(variant string)) {
	defer func(use bool) { useVectors = use }(useVectors)
	if useVectors {
		f("vectors")
	}
	useVectors = false
	f("words")
}

// checkSkipString compares SkipString in all its variants with skipStringByBytes, both before and after bytes above 0x7f
// were seen.
func checkSkipString(t *testing.T, text []byte, from int) {
	text = text[:len(text):len(text)]
	for _, flags := range []Flags{0, HasHighBytes, HasBlob} {
		want := Scanner{Flags: flags}
		wantEnd, wantStatus := skipStringByBytes(&want, text, from)
		eachVariant(func(variant string) {
			got := Scanner{Flags: flags}
			end, status := got.SkipString(text, from)
			if end != wantEnd || status != wantStatus || got.Flags != want.Flags {
				t.Fatalf("SkipString(%q, %d) in %s with flags %d: %d, %d, flags %d; want %d, %d, flags %d",
					text, from, variant, flags, end, status, got.Flags, wantEnd, wantStatus, want.Flags)
			}
		})
	}
}

// TestSkipStringByPlace puts what counts in a string at each place of its first words and two blocks, followed
// by text of several lengths, and every byte, alone and after a backslash, at each place of the first words and one block.
func TestSkipStringByPlace(t *testing.T) {
	check := func(piece string, places int, after ...int) {
		for at := range places {
			for _, n := range after {
				text := strings.Repeat("x", at) + piece + strings.Repeat("y", n)
				checkSkipString(t, []byte(text), 0)
				checkSkipString(t, []byte(text+`" tail`), 0)
			}
		}
	}
	for _, piece := range []string{`"`, `\"`, `\\`, `\\"`, `\\\"`, `\n\t`, `\u00e9`, `\u12`, `\u12g4`, `\x`, `\`, "\x1f", "é", "─", "\xff", "\xc3\"",
		`""`, "é\x01", "\x01é"} {
		check(piece, shortWords*wordSize+2*blockSize+2, 0, 1, 7, 8, 63, 64, 65, 200)
	}
	for c := range 256 {
		check(string([]byte{byte(c)}), shortWords*wordSize+blockSize+2, 0, 65)
		check(string([]byte{'\\', byte(c)}), shortWords*wordSize+blockSize+2, 0, 65)
	}
}

// FuzzSkipString: SkipString finds the same as a look at each byte. The text is also repeated, so that
// short inputs reach the blocks.
func FuzzSkipString(f *testing.F) {
	for _, seed := range []string{`abc"`, `a\n\"\\b"`, "\xff é\"", `漢字\u00e9\ud800"`, "\x00", `\`, strings.Repeat("x", 200) + `"`,
		strings.Repeat(`\\`, 70) + `"`} {
		f.Add([]byte(seed), uint8(0), uint8(1))
		f.Add([]byte(seed), uint8(60), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, lead, times uint8) {
		checkSkipString(t, data, 0)
		checkSkipString(t, data, min(len(data), int(lead)))
		text := strings.Repeat("x", int(lead)) + strings.Repeat(string(data), int(times%8))
		checkSkipString(t, []byte(text), 0)
		checkSkipString(t, []byte(strings.NewReplacer(`"`, "x", "\x00", "y").Replace(text)+`"`), 0)
	})
}

// TestSkipStringReadsItsTextOnly puts texts between two pages that cannot be read: a byte read before or behind the text
// ends the test with a fault.
func TestSkipStringReadsItsTextOnly(t *testing.T) {
	page := os.Getpagesize()
	pages, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(pages)) }()
	require.NoError(t, unix.Mprotect(pages[:page], unix.PROT_NONE))
	require.NoError(t, unix.Mprotect(pages[2*page:], unix.PROT_NONE))
	readable := pages[page : 2*page : 2*page]

	for _, piece := range []string{`x`, `\`, `\n`, `\\"`, `\u00e9`, `"`, "é"} {
		copy(readable, bytes.Repeat([]byte(piece), page))
		for n := range 4*blockSize + 1 {
			checkSkipString(t, readable[page-n:], 0)
			checkSkipString(t, readable[:n], 0)
		}
	}
}
