package message

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// pathSeeds are arguments and details with names in the spellings of each agent.
var pathSeeds = []string{
	`{"input":"*** Begin Patch\n[a.go#1A2B]\nMV \"b.go\"\n*** Update File: c.go\r\n*** End Patch"}`, `"*** Begin Patch\n*** Add File: \u00fc"`,
	`{"command":["bash","-lc","apply_patch <<'EOF'\n*** Begin Patch\n*** Move to: C:\\new\\a\nEOF"],"workdir":"/w"}`,
	`{"input":"f(\"*** Begin Patch\\n*** Delete File: C:\\\\new\\r\\n\", '*** Add File: it', \u0060*** Add File: ${x}\u0060)"}`,
	`{"path":"a; b/c.go:5-9;~/d","paths":["e;f"],"edits":[{"file_path":"g"}]}`, `{"_input":"¶a#1A2B\n§b\n"}`, `{"input":"*** Begin Patch\\`,
	`{"path":"a","sourcePath":"b","perFileResults":[{"path":"c"}],"changes":{"d":{"move_path":"e"}},"success":true}`,
}

// FuzzEachPath: reading the names in any arguments or details ends, with no more names, and no more
// memory, than a multiple of their length. The body of a string is read wherever it is cut.
func FuzzEachPath(f *testing.F) {
	for _, seed := range pathSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		quoted := rawjson.Quote(string(text))
		values := []rawjson.Value{rawjson.Value(quoted), rawjson.Value(`{"input":` + quoted + `}`)}
		if rawjson.IsValidObject(text) {
			values = append(values, text)
		}
		const each, perByte, constant = 2 * MaxPath, 500, 1 << 20
		var start, end runtime.MemStats
		called := 0
		size := 0
		count := func(name string) bool {
			called++
			require.LessOrEqual(t, len(name), each)
			return false
		}
		runtime.ReadMemStats(&start)
		for _, v := range values {
			for _, tool := range []string{"edit", "read", "exec"} {
				EachPath(tool, v, count)
				size += len(v)
			}
			EachResultPath(v, count)
			size += len(v)
		}
		runtime.ReadMemStats(&end)
		require.LessOrEqual(t, called, size)
		require.LessOrEqual(t, end.TotalAlloc-start.TotalAlloc, uint64(perByte*size+each*called+constant))
		for at := range min(len(text), 100) {
			MayBePatched(text, at)
		}
	})
}
