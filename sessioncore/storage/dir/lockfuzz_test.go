package dir

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzLockContent: what is taken for a lock says which process and when, in the form in which locks are written; a lock
// that was cut anywhere names no other process than one whose number begins so.
func FuzzLockContent(f *testing.F) {
	for _, text := range []string{"1:1700000000000\n", "1:1", "0:1\n", "-1:1\n", "2147483648:1\n", "007:08\n", "1:\n", ":1\n", "1:2:3\n", " 1:2\n", "1:99999999999999999999\n", "\xd9\xa1:1\n", ""} {
		f.Add(text, uint(3))
	}
	f.Fuzz(func(t *testing.T, text string, cut uint) {
		pid, millis, ok := lockContent(text)
		if !ok {
			return
		}
		if pid <= 0 || millis < 0 || len(text) > lockSize {
			t.Fatalf("%q: %d, %d", text, pid, millis)
		}
		written := fmt.Sprintf("%d:%d\n", pid, millis)
		if p, m, ok := lockContent(written); !ok || p != pid || m != millis {
			t.Fatalf("%q is written %q, which is %d, %d, %v", text, written, p, m, ok)
		}
		short := text[:cut%uint(len(text)+1)]
		if p, _, ok := lockContent(short); ok && p != pid {
			t.Fatalf("%q: %d, but cut to %q: %d", text, pid, short, p)
		}
		if strings.Count(text, ":") != 1 {
			t.Fatalf("%q", text)
		}
	})
}
