package fs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// procNumber reads a number from a file of the daemon's /proc directory.
func (m *mount) procNumber(file, key string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", m.cmd.Process.Pid, file))
	require.NoError(m.t, err)
	_, after, found := strings.Cut("\n"+string(text), "\n"+key+":")
	require.True(m.t, found, "%s", text)
	var n int
	_, err = fmt.Sscan(after, &n)
	require.NoError(m.t, err)
	return n
}

// maxResident is how much memory of its own the daemon may take, in kB. The pages of the program's file, about 12 MB,
// are not among them: the kernel takes them back when it wants to.
const maxResident = 60_000

// TestMemory: the daemon holds no content: after ls entries and cat context.json on the biggest session it
// is still small, and also after all of it was read.
func TestMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	onceIsEnough(t)
	m := mountForTest(t, big(t))
	for _, look := range []string{`ls "$1/entries" | wc -l`, `cat "$1/context.json" | wc -c`, `cat "$1"/entries/*.json | wc -c`, `cat "$1/leaf" | wc -c`} {
		require.NotEqual(t, "0\n", shell(t, look, m.session("chain")))
		resident := m.procNumber("status", "RssAnon")
		t.Logf("%-30s %d kB", look, resident)
		most := maxResident
		if strings.Contains(look, "*") || strings.Contains(look, "leaf") {
			most += 20_000 // for the 20,000 inodes that the kernel knows from here on, 1 KB each
		}
		require.Less(t, resident, most, look)
	}
}
