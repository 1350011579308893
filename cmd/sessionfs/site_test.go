//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestExportSize: a page of 20,000 entries takes no more than three seconds of processor and 32 MB beside its 20. The race
// detector makes that some fifty seconds on a busy machine, so that with it a tenth of the entries is enough.
func TestExportSize(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	entries := 20_000
	if underRace() {
		entries = 2_000
	}
	s := commandStore(t)
	file := filepath.Join(s.source, "sessions", "large.jsonl")
	require.NoError(t, os.WriteFile(file, largeSession(entries), 0o600))
	cmd := s.command(program, "export", "-s", s.source, "0199aaaa")
	out, err := os.Create(filepath.Join(t.TempDir(), "page.html"))
	require.NoError(t, err)
	defer out.Close()
	cmd.Stdout = out
	require.NoError(t, cmd.Start())
	peak := peakMemory(cmd.Process.Pid)
	require.NoError(t, cmd.Wait())
	require.Equal(t, entries, strings.Count(string(readFile(t, out.Name())), ` id="e`))
	if underRace() {
		return
	}
	require.Less(t, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), 3*time.Second)
	require.Less(t, peak, 32<<10)
	require.NotZero(t, peak)
}

// peakMemory returns how much memory a process has at most until its end, in kB, without the program itself.
func peakMemory(pid int) (peak int) {
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, line, isRunning := strings.Cut(string(status), "RssAnon:")
		if !isRunning {
			return peak
		}
		now := 0
		_, _ = fmt.Sscan(line, &now)
		peak = max(peak, now)
		time.Sleep(5 * time.Millisecond)
	}
}

// largeSession returns a session of answers with calls and their results, with a branch each thousand entries.
func largeSession(entries int) []byte {
	var lines bytes.Buffer
	lines.WriteString(`{"type":"session","version":3,"id":"0199aaaa-0000-7000-8000-000000000001","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/w"}` + "\n")
	parent := "null"
	add := func(n int, message string) {
		if n%1000 == 999 { // another branch
			parent = fmt.Sprintf(`"e%d"`, n/2)
		}
		fmt.Fprintf(&lines, `{"type":"message","id":"e%d","parentId":%s,"timestamp":"2026-01-05T09:00:00.000Z","message":%s}`+"\n", n, parent, message)
		parent = fmt.Sprintf(`"e%d"`, n)
	}
	text := strings.Repeat("the *tide* table is an hour late; see `main.go`. ", 20)
	for n := 0; n < entries; n += 2 {
		add(n, fmt.Sprintf(`{"role":"assistant","provider":"p","model":"m",`+
			`"content":[{"type":"text","text":%q},{"type":"toolCall","id":"c%d","name":"bash","arguments":{"command":"go test"}}]}`, text, n))
		add(n+1, fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"bash","content":[{"type":"text","text":%q}]}`, n,
			strings.Repeat(text+"\n", 5)))
	}
	return lines.Bytes()
}
