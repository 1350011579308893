package fs_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAppendCost: an append reads and writes as much in a long session as in a short one. The least of several rounds
// counts, without what the daemon does besides.
func TestAppendCost(t *testing.T) {
	const rounds, appends = 5, 20
	cost := func(entries int) (read, written int) {
		a := newAgent(t)
		var text strings.Builder
		text.WriteString(header("s"))
		for n := range entries {
			text.WriteString(entry(n, entryID(n), before(n, n-1), "etaoin shrdlu"))
		}
		a.write("s", text.String())
		w := &writing{a, mountForTest(t, a.dir)}
		f, err := os.OpenFile(w.in("append"), os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		line := []byte(message("etaoin shrdlu") + "\n")
		answer := make([]byte, 100)
		add := func() {
			_, err := f.Write(line)
			require.NoError(t, err)
			n, err := f.Read(answer)
			require.NoError(t, err)
			require.Equal(t, 9, n)
		}
		add() // the first one has to read the session
		add()
		read = math.MaxInt
		written = math.MaxInt
		for range rounds {
			r := w.m.procNumber("io", "rchar")
			was := w.m.procNumber("io", "wchar")
			for range appends {
				add()
			}
			read = min(read, (w.m.procNumber("io", "rchar")-r)/appends)
			written = min(written, (w.m.procNumber("io", "wchar")-was)/appends)
		}
		return read, written
	}
	shortRead, shortWritten := cost(100)
	longRead, longWritten := cost(scaled(150_000))
	t.Logf("bytes for each append: %d read and %d written with 100 entries, %d and %d with %d", shortRead, shortWritten, longRead, longWritten, scaled(150_000))
	require.Less(t, longRead, 2*shortRead+8_000)
	require.Less(t, longRead, 100_000)
	require.InDelta(t, shortWritten, longWritten, 200)
}
