package clients

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestBreadcrumbs: a breadcrumb needs two lines; further lines are ignored.
func TestBreadcrumbs(t *testing.T) {
	files := memory.New()
	for text, want := range map[string]string{
		"/w\n/f.jsonl\n": "/f.jsonl", "/w\n/f.jsonl": "/f.jsonl", "/w\n/f.jsonl\nfresh\ncwdstat 1 2\n": "/f.jsonl",
		"\xEF\xBB\xBF\n /w\n/f.jsonl \t\n": "/f.jsonl", "": "", "/w": "", "/w\n": "", "\n/f.jsonl\n": "",
		"/w\n\n/f.jsonl\n": "", "/w\r\n/f.jsonl\r\n": "/f.jsonl", "/w\n/f.jsonl\r\nfresh": "/f.jsonl\r",
		"/w\n/f\x00.jsonl": "/f\x00.jsonl", strings.Repeat("x", maxBreadcrumb) + "\n/f.jsonl": "",
	} {
		require.NoError(t, files.WriteFile("t", []byte(text)))
		got, err := ReadBreadcrumb(files, "t")
		if want == "" && (err == nil || got != "") {
			require.Empty(t, got, "%.60q", text)
			continue
		}
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotFound)
		}
		require.Equal(t, want, got, "%.60q", text)
	}
}

// TestMovedBreadcrumb: the breadcrumb of a session that was moved gets its new place, and no other breadcrumb does.
func TestMovedBreadcrumb(t *testing.T) {
	const (
		base = "2026-02-16T10-20-30-000Z_1f9d2a6c7b8e4f05.jsonl"
		root = "/home/dev/.omp/agent/sessions"
		from = "--old--/" + base
		to   = "-new/" + base
	)
	cwd := t.TempDir()
	info, err := os.Stat(cwd)
	require.NoError(t, err)
	st := info.Sys().(*syscall.Stat_t)
	stat := fmt.Sprintf("cwdstat %d %d", st.Dev, st.Ino)
	for name, test := range map[string]struct {
		text string
		cwd  string
		want string // "": another session's
	}{
		"of 14.9.9":             {"/old\n" + root + "/" + from + "\n", cwd, cwd + "\n" + root + "/" + to + "\n"},
		"of 18":                 {"/old\n" + root + "/" + from + "\ncwdstat 1 2\n", cwd, cwd + "\n" + root + "/" + to + "\n" + stat + "\n"},
		"fresh":                 {"/old\n" + root + "/" + from + "\nfresh\ncwdstat 1 2\n", cwd, cwd + "\n" + root + "/" + to + "\n" + stat + "\n"},
		"no such directory":     {"/old\n" + root + "/" + from + "\ncwdstat 1 2\n", "/nowhere/at/all", "/nowhere/at/all\n" + root + "/" + to + "\n"},
		"another line":          {"/old\n" + root + "/" + from + "\nlater x", cwd, cwd + "\n" + root + "/" + to + "\nlater x"},
		"by another path":       {"/old\n/link/sessions/" + from + "\n", cwd, cwd + "\n/link/sessions/" + to + "\n"},
		"another session":       {"/old\n" + root + "/--old--/x" + base + "\n", cwd, ""},
		"another scope":         {"/old\n" + root + "/--other--/" + base + "\n", cwd, ""},
		"one of its subagents":  {"/old\n" + root + "/--old--/" + strings.TrimSuffix(base, ".jsonl") + "/Task.jsonl\n", cwd, ""},
		"one line":              {"/old", cwd, ""},
		"nothing":               {"", cwd, ""},
		"the path on line 3":    {"/old\nx\n" + root + "/" + from, cwd, ""},
		"a working directory's": {root + "/" + from + "\n/x\n", cwd, ""},
	} {
		got, ok := movedBreadcrumb(test.text, root, from, to, test.cwd)
		require.Equal(t, test.want != "", ok, name)
		require.Equal(t, test.want, got, name)
	}
	_, ok := movedBreadcrumb("/old\n/elsewhere/p/s.jsonl\n", root, "p/s.jsonl", "q/s.jsonl", cwd)
	require.False(t, ok, "a name that other stores have too")
	got, ok := movedBreadcrumb("/old\n"+root+"/p/s.jsonl\n", root, "p/s.jsonl", "q/s.jsonl", "/new")
	require.True(t, ok)
	require.Equal(t, "/new\n"+root+"/q/s.jsonl\n", got)
}

// TestRacyBreadcrumbs: a breadcrumb that was overwritten within a tick of the clock of file times is read again, and a scan
// for clients of that moment has perhaps not found the one that wrote it.
func TestRacyBreadcrumbs(t *testing.T) {
	for racy, want := range map[bool]string{true: "/2.jsonl", false: "/1.jsonl"} {
		mem := memory.New()
		crumbs := breadcrumbs{storage: &storagetest.Stopped{Storage: mem, At: storagetest.Ticking(racy)}}
		for _, file := range []string{"/1.jsonl", "/2.jsonl"} {
			require.NoError(t, mem.WriteFile("t", []byte("/w\n"+file)))
			crumbs.readChanged()
		}
		require.Equal(t, want, crumbs.list[0].session.Value, "racy: %v", racy)
	}
	now := time.Now()
	for age, want := range map[time.Duration]bool{-time.Hour: false, 0: false, time.Millisecond: false, time.Minute: true} {
		scan := clientScan{at: now}
		changed := now.Add(-age).Truncate(time.Millisecond).Add(time.Microsecond)
		crumb := breadcrumb{session: storage.Cached[string]{Token: storage.Token{Changed: changed.UnixNano()}}}
		require.Equal(t, want, scan.isCurrent([]breadcrumb{crumb}), "%v", age)
	}
}
