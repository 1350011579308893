package report

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

// paidLine is an answer that cost something.
func paidLine(id, second, cost string) string {
	return `{"type":"message","id":"` + id + `","parentId":null,"timestamp":"2026-02-16T10:00:` + second + `.000Z","message":{"role":"assistant","provider":"p","model":"m",` +
		`"usage":{"input":1,"cost":{"total":` + cost + `}}}}` + "\n"
}

// TestOwn: what a session took over from its parent is not its own, however it was changed on the way, and everything
// else is.
func TestOwn(t *testing.T) {
	inherited := paidLine("a", "01", "1") + paidLine("b", "02", "2")
	noTime := strings.Replace(paidLine("t", "03", "4"), `"timestamp"`, `"when"`, 1)
	noID := strings.Replace(paidLine("i", "03", "8"), `"id"`, `"name"`, 1)
	task := `{"type":"message","id":"k","parentId":"a","timestamp":"2026-02-16T10:00:04.000Z","message":{"role":"toolResult","toolName":"task","details":{"usage":{"input":5,"cost":{"total":16}}}}}` + "\n"
	for name, c := range map[string]struct{ parent, child, want string }{
		"a fork with an answer of its own":      {inherited + paidLine("c", "03", "4"), inherited + paidLine("d", "05", "32"), "[1,0,0,0,1,0,32]"},
		"a subagent's work is taken over":       {inherited + task, inherited + task, "[0,0,0,0,0,0,0]"},
		"the fork's copies cost nothing":        {inherited, paidLine("a", "01", "0") + paidLine("b", "02", "0") + paidLine("d", "05", "32"), "[1,0,0,0,1,0,32]"},
		"other links, another time zone":        {inherited, strings.ReplaceAll(inherited, "T10:00:01.000Z", "T11:00:01+01:00"), "[0,0,0,0,0,0,0]"},
		"the same id at another time":           {inherited, paidLine("a", "02", "1"), "[1,0,0,0,1,0,1]"},
		"another id at the same time":           {inherited, paidLine("b", "01", "1"), "[1,0,0,0,1,0,1]"},
		"what has no time or no id is no copy":  {noTime + noID, noTime + noID, "[2,0,0,0,2,0,12]"},
		"the parent has nothing":                {"", inherited, "[2,0,0,0,2,0,3]"},
		"an id that the parent used repeatedly": {inherited + paidLine("a", "09", "1"), inherited, "[0,0,0,0,0,0,0]"},
	} {
		parent, child := acquired(t, c.parent), acquired(t, c.child)
		d, err := Usage(context.Background(), child, sessioncore.NoEntry, parent, Prices{})
		require.NoError(t, err, name)
		usage, _ := parseUsage(t, d)
		require.Equal(t, c.want, usage.Own.numbers(), name)
		usage, _ = readUsage(t, child, sessioncore.NoEntry)
		require.Equal(t, usage.Total, usage.Own, name)
	}
}

func acquired(t *testing.T, entries string) *sessioncore.Snapshot {
	snap := sessiontest.Snapshot(t, newTestSession(t, sessiontest.Header+entries).session)
	return snap
}
