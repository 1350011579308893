package forks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestLastOrigin: the record of an entry is read from the end of its text where it stands there, and nowhere else.
func TestLastOrigin(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"message","origin":{"line":3}}`:                                      `{"line":3}`,
		`e":{},"origin":{"path":"a,\"origin\":{}","line":3,"lines":[1,3]}}`:           `{"path":"a,\"origin\":{}","line":3,"lines":[1,3]}`,
		`{"type":"message","arguments":{"a":1,"origin":{"line":3}}}`:                  "",
		`{"type":"message","origin":{"line":3},"more":1}`:                             "",
		`{"type":"message","text":",\"origin\":{\"line\":3}"}`:                        "",
		`ine":3,"lines":[1,2]}}`:                                                      "",
		`{"arguments":{"a":1,"origin":{"line":1}},"timestamp":1,"origin":{"line":3}}`: `{"line":3}`,
	} {
		require.Equal(t, want, string(lastOrigin([]byte(text))), text)
	}
}

// TestLongOrigin: an entry of more records than the end of its text names has all their lines.
func TestLongOrigin(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sessiontest.TestData(t), "forks", "claude.jsonl"))
	require.NoError(t, err)
	h := newHome(t, "claude", claudeFile, string(text)+manyRecords(300))
	name := h.Sessions("")[0]
	snap, err := h.store.Session(name).Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	answer, err := snap.Find(h.entryWith(name, `"text":"part"`))
	require.NoError(t, err)
	of, err := linesOf(snap, answer)
	require.NoError(t, err)
	require.Len(t, of.Lines, 300)
	forked, err := h.fork(name, h.entryWith(name, `"text":"part"`), "")
	require.NoError(t, err)
	copied, err := os.ReadFile(h.path(forked))
	require.NoError(t, err)
	require.Equal(t, 300, strings.Count(string(copied), `"id":"msg_many"`))
}

// manyRecords returns records of Claude Code that are one answer, behind no other one.
func manyRecords(n int) string {
	var records strings.Builder
	parent := "null"
	for i := range n {
		uuid := fmt.Sprintf(`"00000000-0000-4000-8000-%012d"`, i)
		records.WriteString(`{"parentUuid":` + parent + `,"isSidechain":false,"type":"assistant","uuid":` + uuid +
			`,"timestamp":"2026-11-28T18:00:00.000Z","cwd":"/w","sessionId":"s","version":"2.1.332","message":{"id":"msg_many",` +
			`"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"part"}]}}` + "\n")
		parent = uuid
	}
	return records.String()
}
