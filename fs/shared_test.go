package fs_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSharedMounts: two daemons write to one session, each through a file system of its own whose kernel remembers what
// it knew of the file.
func TestSharedMounts(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), strings.Join(writtenEntries, ""))
	var mounts []*mount
	for range 2 {
		mounts = append(mounts, mountForTest(t, newLoopback(t, a.dir, remembers).dir))
	}
	const each = 60
	var wg sync.WaitGroup
	for i, m := range mounts {
		wg.Go(func() {
			for n := range each {
				for {
					err := put(m.session("s", "append"), message(fmt.Sprintf("mount %d, line %d", i, n))+"\n")
					if err == syscall.EBUSY {
						continue // the other one had the lock all the time
					}
					if err != nil {
						t.Errorf("mount %d, line %d: %v", i, n, err)
					}
					break
				}
			}
		})
	}
	wg.Wait()
	texts, parents := map[string]int{}, map[string]int{}
	for _, r := range records(t, a.raw("s")) { // which are all whole
		texts[string(r.Message)]++
		parents[r.parent()]++
	}
	for i := range mounts {
		for n := range each {
			require.Equal(t, 1, texts[fmt.Sprintf(`{"role":"user","content":"mount %d, line %d"}`, i, n)], "mount %d, line %d", i, n)
		}
	}
	for parent, children := range parents {
		if parent != "" && parent != "e0" {
			require.Equal(t, 1, children, "each write was made on what the other one had written before it")
		}
	}

	a.add("s", entry(9, "seen", "e3", "another machine's"))
	require.Eventually(t, func() bool {
		_, err := os.Stat(mounts[0].session("s", "entries/seen.json"))
		return err == nil
	}, patience, 10*time.Millisecond)
}
