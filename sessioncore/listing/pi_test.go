package listing

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// startPi returns a listing of files in an agent directory of a program.
func startPi(t testing.TB, root sessioncore.Program, files map[string]string) (*Listing, *memory.Storage) {
	m := memory.New()
	for name, content := range files {
		require.NoError(t, m.WriteFile(name, []byte(content)))
	}
	store := sessioncore.NewStore(m)
	t.Cleanup(store.Close)
	store.SetProgram(func(string) sessioncore.Program { return root })
	return New(store, "/sessions"), m
}

func nameLine(n int, name string) string {
	return fmt.Sprintf(`{"type":"session_info","id":"n%d","parentId":null,"timestamp":"2026-01-05T09:00:02.000Z","name":%q}`+"\n", n, name)
}

// fill returns entries of about that many bytes.
func fill(bytes int) string {
	line := sessiontest.MessageLine(9, `{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("x", 4000)+`"}],"timestamp":1767603700000}`)
	return strings.Repeat(line, bytes/len(line)+1)
}

const piSystem = `{"role":"system","content":"","sections":{"preamble":"`

func only(t testing.TB, l *Listing) *Info {
	t.Helper()
	found, err := l.Sessions(context.Background())
	require.NoError(t, err)
	require.Len(t, found.All(), 1)
	return found.All()[0]
}

// TestPiNames: the name is the last one, wherever it is in a session of ordinary length.
func TestPiNames(t *testing.T) {
	user := sessiontest.MessageLine(1, `{"role":"user","content":"first"}`)
	prompt := sessiontest.MessageLine(0, piSystem+strings.Repeat("p", 30_000)+`"}}`)
	for _, test := range []struct {
		name    string
		root    sessioncore.Program
		content string
		title   string
	}{
		{"none", sessioncore.ByPi, sessiontest.Header + prompt + user, ""},
		{"after a long prompt", sessioncore.ByPi, sessiontest.Header + prompt + nameLine(1, " A\nname ") + user, "A\nname"},
		{"in the middle", sessioncore.ByPi, sessiontest.Header + fill(40_000) + nameLine(1, "old") + nameLine(2, "new") + user + fill(40_000), "new"},
		{"cleared", sessioncore.ByPi, sessiontest.Header + nameLine(1, "old") + user + nameLine(2, "  "), ""},
		{"a header's title means nothing", sessioncore.ByPi, strings.Replace(sessiontest.Header, `"cwd"`, `"title":"T","cwd"`, 1) + user, ""},
		{"known by the prompt", sessioncore.ByUnknown, sessiontest.Header + prompt + nameLine(1, "N") + user, "N"},
		{"known by the name", sessioncore.ByUnknown, sessiontest.Header + nameLine(1, "N") + user, "N"},
		{"at the end of a long one", sessioncore.ByPi, sessiontest.Header + user + nameLine(1, "old") + fill(300_000) + nameLine(2, "new"), "new"},
		{"at the beginning of a long one", sessioncore.ByPi, sessiontest.Header + user + nameLine(1, "old") + fill(300_000), "old"},
		{"a session of omp", sessioncore.ByOMP, sessiontest.Header + user + nameLine(1, "N"), ""},
		{"another of omp", sessioncore.ByPi, sessiontest.Header + `{"type":"mode_change","id":"m","mode":"plan"}` + "\n" + nameLine(1, "N") + user, ""},
	} {
		l, _ := startPi(t, test.root, map[string]string{"d/x.jsonl": test.content})
		info := only(t, l)
		require.Equal(t, test.title, info.Title, test.name)
		if len(test.content) < prefixSize || info.flags&infoPi != 0 && test.name != "in the middle" {
			require.Equal(t, "first", info.first, test.name)
		}
	}
}

// TestPiNameInTheMiddle: of a long session a name in the middle is not looked for, but known once the session was
// opened, and from then on also after it grew.
func TestPiNameInTheMiddle(t *testing.T) {
	content := sessiontest.Header + fill(200_000) + nameLine(1, "N") + fill(200_000)
	l, files := startPi(t, sessioncore.ByPi, map[string]string{"d/x.jsonl": content})
	require.Empty(t, only(t, l).Title)
	snap, err := l.store.Session("d/x.jsonl").Acquire(context.Background())
	require.NoError(t, err)
	add := func(text string) {
		obj, err := files.Append("d/x.jsonl", []byte(text))
		require.NoError(t, err)
		_ = obj
	}
	snap.Release()
	add(fill(10_000))
	snap, err = l.store.Session("d/x.jsonl").Acquire(context.Background())
	require.NoError(t, err)
	messages := 0
	for e := range sessioncore.Entry(snap.Len()) {
		if snap.Kind(e) == sessioncore.TypeMessage {
			messages++
		}
	}
	snap.Release()
	require.Equal(t, "N", only(t, l).Title, "the index knows it")
	require.Equal(t, messages, only(t, l).MessageCount)
	l.store.Close()
	add(fill(100_000))
	require.Equal(t, "N", only(t, l).Title, "nothing in the growth changed it")
	add(nameLine(2, "M") + fill(100_000))
	require.Equal(t, "M", only(t, l).Title, "the growth did, before its last part")
}

// TestPiOrder: the list is ordered by the last message, as pi's.
func TestPiOrder(t *testing.T) {
	at := func(ms int) string {
		return sessiontest.Header + sessiontest.MessageLine(0, fmt.Sprintf(`{"role":"user","content":"x","timestamp":%d}`, ms)) +
			sessiontest.MessageLine(1, `{"role":"toolResult","content":[],"timestamp":9000000000000}`)
	}
	l, files := startPi(t, sessioncore.ByPi, map[string]string{"d/new.jsonl": at(1767603900000)})
	require.NoError(t, files.WriteFile("d/old.jsonl", []byte(at(1767603800000)))) // written last
	found, err := l.Sessions(context.Background())
	require.NoError(t, err)
	require.Equal(t, []string{"d/new.jsonl", "d/old.jsonl"}, []string{found.All()[0].Name(), found.All()[1].Name()})
	require.Contains(t, string(found.All()[0].appendLine(nil)), `"modified":"2026-01-05T09:05:00.000Z"`)
}

// TestPiResume: a whole id goes before the beginning of another, newer one.
func TestPiResume(t *testing.T) {
	withID := func(id string) string { return strings.Replace(sessiontest.Header, `"s"`, `"`+id+`"`, 1) }
	l, files := startPi(t, sessioncore.ByPi, map[string]string{"d/1_job.jsonl": withID("job")})
	require.NoError(t, files.WriteFile("d/2_job-2.jsonl",
		[]byte(withID("job-2")+sessiontest.MessageLine(0, `{"role":"user","content":"x","timestamp":1967603900000}`))))
	for key, want := range map[string]string{"job": "d/1_job.jsonl", "job-": "d/2_job-2.jsonl", "job-2": "d/2_job-2.jsonl", "jo": "d/2_job-2.jsonl"} {
		info, err := l.Resume(context.Background(), key, false)
		require.NoError(t, err)
		require.Equal(t, want, info.Name(), key)
	}
}
