//go:build unix

package rawjson

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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
