package listing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// piList returns a listing of a session in an agent directory of a program.
func piList(t *testing.T, root sessioncore.Program, name, content string) *Listing {
	l := listOf(t, [2]string{name, content})
	l.store.SetProgram(func(string) sessioncore.Program { return root })
	return l
}

// nameLine returns a session_info entry with the id n and a number.
func nameLine(n int, name string) string {
	return fmt.Sprintf(`{"type":"session_info","id":"n%d","parentId":null,"timestamp":"2026-01-05T09:00:02.000Z","name":%q}`+"\n", n, name)
}

// fill returns entries of about that many bytes.
func fill(bytes int) string {
	line := sessiontest.MessageLine(9, `{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("x", 4000)+`"}],"timestamp":1767603700000}`)
	return strings.Repeat(line, bytes/len(line)+1)
}

const piSystem = `{"role":"system","content":"","sections":{"preamble":"`

// only returns the only session of a listing.
func only(t testing.TB, l *Listing) *Info {
	found := l.all(t)
	require.Len(t, found, 1)
	return found[0]
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
		info := only(t, piList(t, test.root, "d/x.jsonl", test.content))
		require.Equal(t, test.title, info.Title, test.name)
		if len(test.content) < prefixSize || info.flags&infoPi != 0 && test.name != "in the middle" {
			require.Equal(t, "first", info.first, test.name)
		}
	}
}

// TestPiNameInTheMiddle: of a long session a name in the middle is not looked for, but known once the session was
// opened, and from then on also after it grew.
func TestPiNameInTheMiddle(t *testing.T) {
	l := piList(t, sessioncore.ByPi, "d/x.jsonl", sessiontest.Header+fill(200_000)+nameLine(1, "N")+fill(200_000))
	add := func(text string) {
		_, err := l.store.Storage().(*memory.Storage).Append("d/x.jsonl", []byte(text))
		require.NoError(t, err)
	}
	require.Empty(t, only(t, l).Title)
	sessiontest.Snapshot(t, l.store.Session("d/x.jsonl"))
	add(fill(10_000))
	snap := sessiontest.Snapshot(t, l.store.Session("d/x.jsonl"))
	messages := 0
	for e := range sessioncore.Entry(snap.Len()) {
		if snap.Kind(e) == sessioncore.TypeMessage {
			messages++
		}
	}
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
	l := piList(t, sessioncore.ByPi, "d/new.jsonl", at(1767603900000))
	l.write(t, "d/old.jsonl", at(1767603800000)) // written last
	found := l.all(t)
	require.Equal(t, []string{"d/new.jsonl", "d/old.jsonl"}, []string{found[0].Name(), found[1].Name()})
	require.Contains(t, string(found[0].appendLine(nil)), `"modified":"2026-01-05T09:05:00.000Z"`)
}

// TestPiResume: a whole id goes before the beginning of another, newer one.
func TestPiResume(t *testing.T) {
	withID := func(id string) string { return strings.Replace(sessiontest.Header, `"s"`, `"`+id+`"`, 1) }
	l := piList(t, sessioncore.ByPi, "d/1_job.jsonl", withID("job"))
	l.write(t, "d/2_job-2.jsonl", withID("job-2")+sessiontest.MessageLine(0, `{"role":"user","content":"x","timestamp":1967603900000}`))
	for key, want := range map[string]string{"job": "d/1_job.jsonl", "job-": "d/2_job-2.jsonl", "job-2": "d/2_job-2.jsonl", "jo": "d/2_job-2.jsonl"} {
		require.Equal(t, want, l.resume(t, key), key)
	}
}
