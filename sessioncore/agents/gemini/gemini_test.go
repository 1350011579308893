package gemini

import (
	"fmt"
	"strings"
	"testing"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
)

// kit has a home with one project, garden, whose directory is /srv/garden.
var kit = agentstest.Kit{
	Agent:   "gemini",
	Prepare: func(h *agentstest.Home) { h.Put("tmp/garden/.project_root", "/srv/garden") },
	Place:   func(sample string) string { return "tmp/garden/chats/session-" + sample },
}

func TestSamples(t *testing.T) {
	kit.Samples(t)
}

// FuzzRecords checks that records in any order give a tree of whole entries, and the same one where the
// file grew.
func FuzzRecords(f *testing.F) {
	kinds := []string{
		`{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00Z","kind":"subagent"}`,
		`{"id":"ID","type":"user","content":[{"text":"TEXT"},{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}`,
		`{"id":"ID","type":"user","content":"TEXT","displayContent":"typed"}`,
		`{"id":"ID","type":"user","content":"<session_context>TEXT"}`,
		`{"id":"ID","type":"user","content":[{"functionResponse":{"id":"cID","response":{"output":7}}}]}`,
		`{"id":"ID","type":"gemini","content":"TEXT","model":"TEXT","tokens":{"input":7,"cached":9}}`,
		`{"id":"ID","type":"gemini","content":"","toolCalls":[{"id":"cID","result":"TEXT","args":null},{"status":"error"}]}`,
		`{"id":"ID","type":"gemini","content":[{"text":"TEXT"},{"thought":true},{"functionCall":{"id":"cID"}}]}`,
		`{"id":"ID","type":"error","content":"TEXT"}`,
		`{"id":"ID","type":"info","content":[{"inlineData":{}}]}`,
		`{"$rewindTo":"ID"}`,
		`{"$set":{"messages":[{"id":"ID","type":"user","content":"TEXT"}]}}`,
		`{"$set":{"messages":[{"id":"r1"},{"id":"r2"},{"id":"ID","type":"gemini","content":"TEXT"}]}}`,
		`{"$set":{"messages":[{"id":"r0"},{"id":"ID","type":"user","content":"<state_snapshot>"},{"id":"g"},` +
			`{"id":"kID","type":"user","content":"t1"}],"summary":"TEXT"}}`,
	}
	f.Add([]byte("\x00\x01\x05\x06\x04\x0a\x0b\x0c\x0d\x08\x08\x05\x0d\x07\x01\x0a"))
	f.Add([]byte("\x10\x11\x21\x14\x26\x35\x18\x29\x2d\x31\x1c\x4b\x0a\x48"))
	f.Fuzz(func(t *testing.T, plan []byte) {
		var file strings.Builder
		for i, step := range plan[:min(len(plan), 30)] {
			kind := kinds[int(step)%len(kinds)]
			id := fmt.Sprint("r", int(step)/len(kinds)%6)
			text := fmt.Sprint("t", i%3)
			record := strings.NewReplacer("ID", id, "TEXT", text).Replace(kind)
			file.WriteString(record + "\n")
		}
		converter := func() *agents.Builder { return newHome(nil).Converter(agents.About{ID: "s"}, nil) }
		agentstest.Prefixes(t, converter, file.String())
	})
}
