package copilot

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest"
)

const startLine = `{"type":"session.start","data":{"sessionId":"one","startTime":"2026-10-08T10:00:00.000Z",` +
	`"context":{"cwd":"/srv/x"}},"id":"s","timestamp":"2026-10-08T10:00:00.000Z"}` + "\n"

// counted returns a home with a session, and the number of bytes that are read of its files.
func counted(t *testing.T, text string) (*agentstest.Home, *int64) {
	dir := t.TempDir()
	sessiontest.WriteFile(t, filepath.Join(dir, stateDir, "one", eventsName), text)
	read := new(int64)
	files := &storagetest.Hooked{Storage: sessiontest.OpenDir(t, dir)}
	files.After = func(c storagetest.Call, err error) error {
		if c.Op == "ReadAt" {
			*read += int64(c.Size)
		}
		return err
	}
	return agentstest.Open(t, "copilot", dir, files), read
}

// TestManySubagents: one pass shares out the events of a file, however many subagents it has.
func TestManySubagents(t *testing.T) {
	for name, form := range map[string]string{
		"one by one": `{"type":"subagent.started","data":{"toolCallId":"t%[1]d"},"id":"s","agentId":"a%[1]d"}` + "\n" +
			`{"type":"user.message","data":{"content":"y"},"id":"q%[1]d","agentId":"a%[1]d"}` + "\n",
		"old": `{"type":"subagent.started","data":{"toolCallId":"t%[1]d"},"id":"s"}` + "\n" +
			`{"type":"user.message","data":{"content":"y","parentToolCallId":"t%[1]d"},"id":"q"}` + "\n",
		"one inside the other": `{"type":"subagent.started","data":{"toolCallId":"t%[1]d"},"id":"s","agentId":"a%[1]d"}` + "\n" +
			`{"type":"tool.execution_complete","data":{"toolCallId":"t%[2]d"},"id":"q","agentId":"a%[1]d"}` + "\n" +
			`{"type":"user.message","data":{"content":"y"},"id":"q","agentId":"a%[2]d"}` + "\n",
	} {
		sessiontest.Linear(t, 100, func(n int) int64 {
			var text strings.Builder
			text.WriteString(startLine)
			for i := range n {
				fmt.Fprintf(&text, form, i, i/2)
			}
			home, read := counted(t, text.String())
			work := sessiontest.WorkOf(func() {
				sessions := home.Sessions("")
				require.Greater(t, len(sessions), n/2, name)
				for _, name := range sessions {
					obj, err := home.Open(name)
					require.NoError(t, err)
					beginningOf(t, obj)
					require.Contains(t, storagetest.ReadObject(t, obj), `"cwd":"/srv/x"`)
					require.NoError(t, obj.Close())
				}
			})
			return work.Scanned + *read
		})
	}
}

// TestManyEqualIDs: events of one id have ids of entries without a look at all those before.
func TestManyEqualIDs(t *testing.T) {
	for _, form := range []string{
		`{"type":"user.message","data":{"content":"y"},"id":"q"}` + "\n",
		`{"type":"session.model_change","data":{"newModel":"m%[1]d"},"id":"q"}` + "\n" +
			`{"type":"user.message","data":{"content":"y"},"id":"q%[1]d"}` + "\n",
		`{"type":"assistant.message","data":{"content":"y","apiCallId":"c%[1]d"},"id":"q"}` + "\n" +
			`{"type":"tool.execution_complete","data":{"toolCallId":"t"},"id":"q"}` + "\n",
	} {
		sessiontest.LinearMemory(t, 3000, func(n int) int64 {
			var text strings.Builder
			text.WriteString(startLine)
			for i := range n {
				fmt.Fprintf(&text, form, i)
			}
			converter := func() *agents.Builder { return New(nil).Converter(agents.About{ID: "s"}, nil) }
			return agentstest.ConvertWork(t, converter, text.String()).Sum()
		})
	}
}

// TestManyUses: an image that many messages name is shown some times.
func TestManyUses(t *testing.T) {
	image := strings.Repeat("A", 20<<10)
	var text strings.Builder
	text.WriteString(startLine)
	fmt.Fprintf(&text, `{"type":"session.binary_asset","data":{"assetId":"i","mimeType":"image/png","data":%q},"id":"i"}`+"\n", image)
	for i := range 100 {
		const message = `{"type":"user.message","data":{"content":"y","attachments":[{"assetId":"i"}]},"id":"q%d"%s}` + "\n"
		ofSubagent := fmt.Sprintf(`,"agentId":"a%d"`, i)
		fmt.Fprintf(&text, message, i, "")
		fmt.Fprintf(&text, message, i, ofSubagent)
	}
	home, _ := counted(t, text.String())
	shown := 0
	for _, name := range home.Sessions("") {
		session := home.Read(name)
		shown += strings.Count(session, image)
		require.Equal(t, path.Dir(name) == stateDir, strings.Contains(session, "[image i]"))
	}
	require.Equal(t, 2*maxUses, shown)
}

// TestShares: the session of a subagent is the one that a converter makes of all events of the file.
func TestShares(t *testing.T) {
	samples, err := filepath.Glob(filepath.Join(sessiontest.TestData(t), "agents/copilot/*.jsonl"))
	require.NoError(t, err)
	found := 0
	for _, sample := range samples {
		text, err := os.ReadFile(sample)
		require.NoError(t, err)
		h := agentstest.New(t, "copilot")
		sessiontest.WriteFile(t, filepath.Join(h.Dir, stateDir, "one", eventsName), string(text))
		for _, name := range h.Sessions(stateDir + "/one") {
			about := h.Format.(agents.FactsFormat).FactsAbout(name)
			whole, _ := agentstest.Convert(t, New(nil).Converter(about, nil), string(text))
			require.Equal(t, withoutProblems(whole), withoutProblems(h.Read(name)), name)
			found++
		}
	}
	require.NotZero(t, found)
}

// withoutProblems returns the lines of a session that are objects.
func withoutProblems(session string) (lines []string) {
	for line := range strings.Lines(session) {
		if line[0] == '{' {
			lines = append(lines, line)
		}
	}
	return lines
}
