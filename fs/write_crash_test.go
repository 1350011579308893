package fs_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCrashes: kill -9 of the daemon at random moments, while a program appends. What was acknowledged is in the file, in
// order, once; what was not is there whole or not at all, but for a torn end, which the next write leaves behind on a line of
// its own. TestPowerLoss has each state that a kill leaves, scripts/torture kills beside every kind of write.
func TestCrashes(t *testing.T) {
	w := newWriting(t)
	acked := 0
	for round := range sized(50, 8) {
		before := w.raw("s")
		id := func(n int) string { return fmt.Sprintf("r%d-%d", round, n) }
		done := make(chan int)
		go func() {
			n := 0
			for put(w.in("append"), custom(id(n), n*997%20_000)) == nil {
				n++
			}
			done <- n
		}()
		require.Eventually(t, func() bool { return len(w.raw("s")) > len(before) }, patience, time.Millisecond)
		time.Sleep(time.Duration(rand.IntN(60_000)) * time.Microsecond)
		w.m.crash()
		was := <-done
		text := strings.TrimPrefix(w.raw("s"), before)
		whole := records(t, text[:strings.LastIndexByte(text, '\n')+1])
		require.Contains(t, []int{was, was + 1}, len(whole), "round %d: all that was acknowledged, and what was in flight", round)
		for n, r := range whole {
			require.Equal(t, id(n), r.ID, "round %d", round)
		}
		acked += was
		w.m = mountForTest(t, w.dir)
		shown := names(t, w.in("entries"))
		next := ask(t, w.in("append"), message("at once, whoever's lock is there"))
		require.Equal(t, append(shown, next+".json"), names(t, w.in("entries")))
		require.Subset(t, shown, []string{"e0.json", id(0) + ".json", id(len(whole)-1) + ".json"})
		require.Equal(t, "s.jsonl\n", run(t, "ls", "-A", w.path("")), "neither a lock nor a temporary file is left")
	}
	t.Logf("%d writes acknowledged, all there", acked)
	require.Positive(t, acked)
}

// crash kills the daemon and removes what is left of the mount.
func (m *mount) crash() {
	_ = m.cmd.Process.Kill()
	<-m.ended
	_ = detach(m.dir)
}
