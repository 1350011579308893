package all

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// eachArray calls do with each array in a value that has an element, its last element, and the keys above it.
func eachArray(v rawjson.Value, keys string, do func(keys string, array, last rawjson.Value)) {
	for m := range v.EachMember {
		eachArray(m.Value, keys+"."+m.Name(), do)
	}
	var last rawjson.Value
	for element := range v.EachElement {
		last = element
		eachArray(element, keys+"[]", do)
	}
	if last != nil {
		do(keys, v, last)
	}
}

// longArray is an array in a line of a file, which can be made longer.
type longArray struct {
	file         []byte
	at           int // the end of the array, before its bracket
	last, agent  string
	fixture, key string
}

// with returns the file with n more elements, copies of the last one.
func (a *longArray) with(n int) string {
	more := strings.Repeat(","+a.last, n)
	return string(a.file[:a.at]) + more + string(a.file[a.at:])
}

// longArrays returns an array of each place in a record of each agent's files in testdata.
func longArrays(t *testing.T) (found []longArray) {
	agentOf := agentsOfFiles(t)
	known := map[string]bool{} // the places that are found, by agent and keys
	for _, file := range slices.Sorted(maps.Keys(agentOf)) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, a := range arraysIn(text) {
			a.agent = agentOf[file]
			a.fixture = filepath.Base(file)
			place := a.agent + a.key
			if !known[place] {
				known[place] = true
				found = append(found, a)
			}
		}
	}
	return found
}

// agentsOfFiles returns the names of the agents of the session files in testdata.
func agentsOfFiles(t *testing.T) map[string]string {
	files, err := filepath.Glob(root + "testdata/agents/*/*.jsonl")
	require.NoError(t, err)
	agentOf := map[string]string{}
	for _, file := range files {
		agentOf[file] = filepath.Base(filepath.Dir(file))
	}
	demo := map[string]string{"claude": "demo-claude/projects/*/*.jsonl", "codex": "demo-codex/sessions/*/*/*/*.jsonl"}
	for agent, pattern := range demo {
		files, err := filepath.Glob(root + "testdata/" + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			agentOf[file] = agent
		}
	}
	return agentOf
}

// arraysIn returns the arrays in the records of a file.
func arraysIn(file []byte) (found []longArray) {
	start := 0 // of the line
	for line := range bytes.Lines(file) {
		record := rawjson.Value(bytes.TrimSpace(line))
		if rawjson.IsValidObject(record) {
			eachArray(record, "", func(keys string, array, last rawjson.Value) {
				end := array.OffsetIn(line) + len(array)
				found = append(found, longArray{
					file: file,
					at:   start + end - 1,
					last: string(last),
					key:  keys,
				})
			})
		}
		start += len(line)
	}
	return found
}

// TestManyParts: the work for a record grows with it, and not with its square, however many parts a message has, or elements
// any other array in it.
func TestManyParts(t *testing.T) {
	sessiontest.NotUnderRace(t)
	arrays := longArrays(t)
	require.Greater(t, len(arrays), 30)
	for i := range arrays {
		a := &arrays[i]
		t.Run(a.agent+" "+a.fixture+a.key, func(t *testing.T) {
			work := func(n int) int64 {
				text := a.with(n)
				newConverter := converters(t, []byte(text))[a.agent]
				require.NotNil(t, newConverter)
				return agentstest.ConvertWork(t, newConverter, text).Sum()
			}
			once := work(2000)
			more := work(4 * 2000)
			const buffers = 32 << 20 // of long lines
			require.Less(t, more, 8*once+buffers, "its square is 16 times as much; memory grows in steps")
		})
	}
}
