package fs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// paid is an answer at second n that cost so many dollars.
func paid(n int, id string, dollars int) string {
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":null,"timestamp":"2026-02-16T11:00:%02d.000Z",`+
		`"message":{"role":"assistant","provider":"p","model":"m",`+
		`"content":[{"type":"text","text":"x"}],"usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,`+
		`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":%d}}}}`, id, n, dollars) + "\n"
}

// TestCosts: usage.jsonl counts the answers of a fork once, is not listed, has its size, and goes with the sessions.
func TestCosts(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s")+paid(1, "a", 1)+paid(2, "b", 10))
	m := mountForTest(t, a.dir)
	all := func() string {
		file := m.path("usage.jsonl")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.EqualValues(t, 0o400, info.Mode())
		require.EqualValues(t, info.Size(), len(read(t, file)))
		return run(t, "jq", "-c", "[.day, .cwd, .model, .assistantMessages, .cost.total]", file)
	}
	require.NotContains(t, names(t, m.dir), "usage.jsonl")
	require.Equal(t, `["2026-02-16","/home/dev/project","p/m",2,11]`+"\n", all())
	run(t, "sh", "-c", `echo b > "$1"`, "sh", m.session("s", "fork"))
	require.Equal(t, `["2026-02-16","/home/dev/project","p/m",2,11]`+"\n", all())
	a.write("c", strings.NewReplacer("/home/dev/project", "/other", "10:20:30", "10:20:31").Replace(childOf("c", "s"))+paid(1, "a", 1)+paid(3, "c", 100))
	require.Equal(t, `["2026-02-16","/home/dev/project","p/m",2,11]`+"\n"+`["2026-02-16","/other","p/m",1,100]`+"\n", all())
	a.add("c", paid(4, "d", 1000))
	require.Equal(t, `["2026-02-16","/home/dev/project","p/m",2,11]`+"\n"+`["2026-02-16","/other","p/m",2,1100]`+"\n", all())
	require.Error(t, os.WriteFile(m.path("usage.jsonl"), nil, 0o600))
	for _, name := range names(t, a.path("")) {
		require.NoError(t, os.Remove(a.path(name)))
	}
	require.Empty(t, all())
}
