package fs_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
)

// What clients make the daemon hold is bounded (docs/design.md section 7, Memory).

// tightMemory is a budget in which little goes.
func tightMemory(c *mountConfig) { c.options.Memory = int64(sized(150<<20, budget.Min)) }

// staysSmall fails if the daemon ever took more than its budget.
func (m *mount) staysSmall(t *testing.T) {
	t.Helper()
	peak, most := m.procNumber("status", "VmHWM"), sized(150<<20, budget.Min)>>10
	t.Logf("at most %d kB were resident, of %d", peak, most)
	if !raceEnabled {
		require.Less(t, peak, most)
	}
}

// hoarder is a Python program's beginning: attempt(f) returns the name of the errno that f fails with, or "".
const hoarder = `
import collections, errno, os, sys
def attempt(f):
    try: f()
    except OSError as e: return errno.errorcode[e.errno]
    return "ok"
def write(fd, size):
    piece = b"x" * (1 << 20)
    while size > 0: size -= os.write(fd, piece[:size])
`

// TestUnfinishedLinesAreBounded: files with the beginning of a line each do not fill the memory. Who asks for more gets
// ENOMEM, and others write on; when the files are closed, there is room again.
func TestUnfinishedLinesAreBounded(t *testing.T) {
	w := newWriting(t, tightMemory)
	out := python(t, hoarder+`
append, size = sys.argv[1], int(sys.argv[2])
answers = collections.Counter()
files = [os.open(append, os.O_WRONLY) for _ in range(48)]
for fd in files: answers[attempt(lambda: write(fd, size))] += 1
one = os.open(append, os.O_WRONLY)
print(sorted(answers), attempt(lambda: os.write(one, b'{"type":"custom","customType":"t"}\n')))
for fd in files: attempt(lambda: os.close(fd))
big = os.open(append, os.O_WRONLY)
print(attempt(lambda: write(big, size)), attempt(lambda: os.write(big, b'\n')))
`, w.in("append"), strconv.Itoa(sized(30<<20, 2<<20)))
	require.Equal(t, "['ENOMEM', 'ok'] ok\nok EINVAL\n", out, "48 lines of x; a line that is whole; such a line again, ended")
	require.Contains(t, w.m.logged(), "-o memory=")
	w.m.staysSmall(t)
}

// TestLongLine: the longest line is written within the default budget.
func TestLongLine(t *testing.T) {
	notUnderRace(t)
	w := newWriting(t)
	line := fmt.Sprintf(`{"type":"custom","customType":"t","data":[%s""]}`, strings.Repeat(`"`+strings.Repeat("x", 1<<16)+`",`, sized(1023, 100)))
	require.Less(t, len(line), 64<<20)
	require.NoError(t, put(w.in("append"), line+"\n"))
	require.Contains(t, w.read("leaf")[:100], `"customType":"t"`)
	peak := w.m.procNumber("status", "VmHWM")
	t.Logf("at most %d kB were resident", peak)
	require.Less(t, peak, budget.Default>>10)
}
