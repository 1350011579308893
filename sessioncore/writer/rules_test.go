package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// inMessage is an entry with a message.
func inMessage(message string) string { return `{"type":"message","message":` + message + `}` }

// takes appends each line of a file of testdata to a new session, which stays one of its dialect.
func takes(t *testing.T, start func() *writing, file string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		w := start()
		dialect := w.snapshot().Dialect()
		w.adds(strings.TrimSuffix(line, "\n"))
		require.Same(t, dialect, w.snapshot().Dialect(), line)
	}
}

// refuses appends each line of a file of testdata to a new session, and compares the reason with the next line: the field that
// is wrong, what was expected and what was found.
func refuses(t *testing.T, start func() *writing, file string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for ; len(lines) > 0; lines = lines[2:] {
		w := start()
		before := w.content()
		_, err := w.append(lines[0])
		require.ErrorIs(t, err, sessioncore.ErrInvalid, lines[0])
		require.ErrorAs(t, err, new(*FieldError), lines[0])
		require.Equal(t, lines[1], "\t"+err.Error(), lines[0])
		require.Equal(t, before, w.content())
	}
}

// starting returns a session with a content in memory.
func starting(t *testing.T, content string) func() *writing {
	return func() *writing { return startMemory(t, content, Options{}) }
}

// TestTaken: every type that can be written, in each documented shape, and every role and block, as clients write them and as
// people do.
func TestTaken(t *testing.T) { takes(t, starting(t, plainFile), "testdata/taken.jsonl") }

// TestRefused: what would make a client fail, or show or send something else, is refused with the field, what was expected
// and what was found.
func TestRefused(t *testing.T) { refuses(t, starting(t, plainFile), "testdata/refused.txt") }

// TestFilledIn: what clients cannot do without, and says nothing, is added; nothing else changes.
func TestFilledIn(t *testing.T) {
	tests := []struct{ give, want string }{
		{`{"role":"bashExecution","command":"ls"}`, `{"role":"bashExecution","command":"ls","output":""}`},
		{`{"role":"pythonExecution","code":"1", "n":1.0}`, `{"role":"pythonExecution","code":"1", "n":1.0,"output":""}`},
		{`{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"x"},{"type":"toolCall","id":"b","name":"x","arguments":{"q":1}},` +
			`{"name":"x","type":"toolCall","id":"c"}]}`,
			`{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"x","arguments":{}},` +
				`{"type":"toolCall","id":"b","name":"x","arguments":{"q":1}},{"name":"x","type":"toolCall","id":"c","arguments":{}}],` + noUsage + `}`},
		{`{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{}}`,
			`{"role":"toolResult","toolCallId":"c","toolName":"task","content":[],"details":{"results":[]}}`},
	}
	for _, test := range tests {
		w := startMemory(t, plainFile, Options{})
		_, err := w.append(inMessage(test.give))
		require.NoError(t, err, test.give)
		require.Contains(t, w.content(), `"message":`+test.want+`}`, test.give)
	}
}

// TestClientsEntriesAreValid: whatever a client wrote can be written through the mount.
func TestClientsEntriesAreValid(t *testing.T) {
	sessiontest.NotUnderRace(t)
	roots := []string{"../../testdata/demo", "../../testdata/xcsh", "../../testdata/pi"}
	for _, c := range sessiontest.Cases(t) {
		if !strings.HasPrefix(c.Name, "handmade/") {
			roots = append(roots, filepath.Join(c.Dir, "agent"))
		}
	}
	for _, root := range roots {
		entries := 0
		require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".jsonl") {
				entries += reappended(t, path)
			}
			return err
		}))
		require.NotZero(t, entries, root)
	}
}

// reappended appends each entry of a session to another one, without what says where it was.
func reappended(t *testing.T, path string) (entries int) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	source := startMemory(t, string(content), Options{})
	snap, err := source.session.Acquire(context.Background())
	if errors.Is(err, sessioncore.ErrNotSession) {
		return 0
	}
	require.NoError(t, err)
	defer snap.Release()
	for e := range sessioncore.Entry(snap.Len()) {
		kind := snap.Kind(e)
		if shapes()["omp/"+kind.String()] == nil {
			continue // of a type that cannot be appended
		}
		text, err := snap.ShownText(e)
		require.NoError(t, err)
		if kind == sessioncore.TypeCompaction && text.Member("firstKeptEntryId") == nil {
			continue // one of version 1 that keeps nothing
		}
		bare := setMembers(text, []objectMember{{"id", ""}, {"parentId", ""}})
		_, err = parseDraft(bare, sessioncore.OMP, PersistRules{Blobs: true})
		require.NoError(t, err, "%s: %.300s", path, text)
		entries++
	}
	return entries
}
