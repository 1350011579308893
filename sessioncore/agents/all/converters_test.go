package all

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// fixtures returns the texts of the session files in the testdata of all agents.
func fixtures(t testing.TB) (texts [][]byte) {
	t.Helper()
	files, err := filepath.Glob(root + "testdata/agents/*/*.json*")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, ".want") })
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts = append(texts, text)
	}
	return texts
}

// converters returns what makes a converter of each agent for a file, by the agent's name.
func converters(t testing.TB, text []byte) map[string]func() *agents.Builder {
	t.Helper()
	made := map[string]func() *agents.Builder{}
	files := sessiontest.Memory(t, text)
	for _, agent := range agents.All() {
		format, err := agent.Alone(files, rawjson.Value("{}"))
		require.NoError(t, err)
		obj, err := files.Open(sessiontest.FileName)
		require.NoError(t, err)
		t.Cleanup(func() { obj.Close() })
		made[agent.Name] = func() *agents.Builder { return format.Converter(agents.About{ID: "s"}, obj) }
	}
	return made
}

// TestKeepsNoRecord: a converter keeps no part of a record's text, which would keep the whole line in
// memory, of whatever agent the record is.
func TestKeepsNoRecord(t *testing.T) {
	for _, text := range fixtures(t) {
		for agent, newConverter := range converters(t, text) {
			c := newConverter()
			kept := map[int]weak.Pointer[byte]{}
			for n, line := range bytes.Split(text, []byte("\n")) {
				record := bytes.Clone(bytes.TrimSpace(line))
				if len(record) < 64 || !rawjson.IsValidObject(record) {
					continue
				}
				kept[n] = weak.Make(&record[0])
				_ = c.Add(nil, record, int64(n+1))
			}
			_ = c.Tail(nil)
			runtime.GC()
			for n, record := range kept {
				require.Nil(t, record.Value(), "%s keeps line %d of %.150s", agent, n+1, text)
			}
			runtime.KeepAlive(c)
		}
	}
}

const (
	// workOfByte and workOfFile bound the counted work of a conversion.
	workOfByte = 64
	workOfFile = 1 << 20
)

// FuzzWork: whatever a file holds, the work of each agent's converter grows as the file does.
func FuzzWork(f *testing.F) {
	for _, text := range fixtures(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for agent, newConverter := range converters(t, text) {
			work := agentstest.ConvertWork(t, newConverter, string(text))
			require.LessOrEqual(t, work.Scanned, int64(workOfByte*len(text)+workOfFile), agent)
		}
	})
}
