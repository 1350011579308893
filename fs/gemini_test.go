package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGeminiLive: a mount of Gemini CLI shows a session that grows, an answer that comes again with its results, a session of an
// old client that is rewritten, and a subagent; and it hides the file that a resume leaves.
func TestGeminiLive(t *testing.T) {
	source := t.TempDir()
	chats := filepath.Join(source, "tmp/garden/chats")
	const (
		log, doc = "session-2026-01-01T00-00-a1a1a1a1", "session-2025-01-01T00-00-b2b2b2b2"
		answer   = `{"id":"a","timestamp":"2026-01-01T00:00:02Z","type":"gemini","content":"Leek.","model":"gemini-2.5-pro"`
		header   = `{"sessionId":"a1a1a1a1-0000-4000-8000-000000000001","projectHash":"h","startTime":"2026-01-01T00:00:00Z"}` + "\n"
	)
	document := func(more string) string {
		return "{\n  \"sessionId\": \"b2b2b2b2\",\n  \"messages\": [\n" +
			`{"id":"o","type":"user","content":"Old?"}` + more + "\n  ],\n  \"summary\": \"Pears\"\n}\n"
	}
	writeFile(t, filepath.Join(source, "tmp/garden/.project_root"), "/srv/garden")
	writeFile(t, filepath.Join(chats, log+".jsonl"), header)
	writeFile(t, filepath.Join(chats, doc+".json"), document(""))
	m := mountForTest(t, source)
	s := func(session string, parts ...string) string {
		return m.path(append([]string{"sessions", "garden", session}, parts...)...)
	}
	add := func(text string) { grow(t, filepath.Join(chats, log+".jsonl"), text) }

	require.Equal(t, []string{doc, doc + ".jsonl", log, log + ".jsonl"}, names(t, m.path("sessions/garden")))
	require.Equal(t, "/srv/garden\n", string(read(t, s(log, "cwd"))))
	add(`{"id":"u","timestamp":"2026-01-01T00:00:01Z","type":"user","content":[{"text":"What grows?"}]}` + "\n" + answer + "}\n")
	require.Equal(t, []string{"u.json", "a.model.json", "a.json"}, names(t, s(log, "entries")))
	require.Equal(t, "What grows?\n", string(read(t, s(log, "title"))))
	add(answer + `,"toolCalls":[{"id":"c","name":"read_file","args":{"file_path":"3.txt"},"status":"success",` +
		`"result":"leek","agentId":"d4"}]}` + "\n" + `{"$set":{"summary":"Bed three"}}` + "\n")
	require.Equal(t, []string{"u.json", "a.model.json", "a.json", "a.2.json"}, names(t, s(log, "entries")))
	require.Equal(t, "Bed three\n", string(read(t, s(log, "title"))))
	require.Contains(t, string(read(t, m.path("by-file/srv/garden/3.txt/results.tsv"))), log)

	writeFile(t, filepath.Join(chats, "a1a1a1a1-0000-4000-8000-000000000001/d4.jsonl"), header)
	require.Equal(t, []string{"d4", "d4.jsonl"}, names(t, s(log, "artifacts/subagents")))
	writeFile(t, filepath.Join(chats, "session-2026-01-02T00-00-a1a1a1a1.jsonl"), header)
	require.Equal(t, []string{doc, doc + ".jsonl", log, log + ".jsonl"}, names(t, m.path("sessions/garden")))
	require.Len(t, names(t, m.path("by-id")), 2)

	require.Contains(t, string(read(t, s(doc, "transcript.md"))), "Old?")
	writeFile(t, filepath.Join(chats, doc+".json"), document(`,{"id":"n","type":"user","content":"In place"}`))
	require.Contains(t, string(read(t, s(doc, "transcript.md"))), "In place")
	writeFile(t, filepath.Join(chats, "new"), document(`,{"id":"r","type":"user","content":"Renamed"}`))
	require.NoError(t, os.Rename(filepath.Join(chats, "new"), filepath.Join(chats, doc+".json")))
	text := string(read(t, s(doc, "transcript.md")))
	require.True(t, strings.Contains(text, "Renamed") && !strings.Contains(text, "In place"), text)
	require.ErrorIs(t, os.WriteFile(s(doc, "title"), []byte("x\n"), 0), syscall.EROFS)
	writeFile(t, filepath.Join(chats, doc+".jsonl"), `{"sessionId":"b2b2b2b2","projectHash":"h"}`+"\n"+
		`{"id":"z","type":"user","content":"Resumed"}`+"\n")
	require.Equal(t, []string{"z.json"}, names(t, s(doc, "entries")))
}
