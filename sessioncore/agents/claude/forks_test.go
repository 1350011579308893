package claude

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// sayAt returns a message of the person at a second.
func sayAt(uuid, parent string, second int) string {
	at := fmt.Sprintf(`"timestamp":"2026-03-30T08:00:%02d.000Z"`, second)
	return strings.Replace(user(uuid, parent, "go"), `"timestamp":"2026-03-30T07:13:41.000Z"`, at, 1)
}

// sharedBranch has the records that a fork has copied.
var sharedBranch = []string{sayAt("a", "", 1), sayAt("b", "a", 2)}

// afterShared returns the shared records with others behind them.
func afterShared(lines ...string) []string { return slices.Concat(sharedBranch, lines) }

// TestForks: a fork whose records do not name the original has it for its parent all the same, and never the other
// way round.
func TestForks(t *testing.T) {
	require.Contains(t, sayAt("a", "", 7), "08:00:07")
	withOlderBranch := []string{sayAt("a", "", 1), sayAt("x", "a", 1), sayAt("b", "a", 2)}
	for name, c := range map[string]struct {
		original    []string
		fork        []string
		isUndecided bool
	}{
		"the original did not go on": {
			original: sharedBranch,
			fork:     afterShared(sayAt("f", "b", 9)),
		},
		"both went on, the fork first": {
			original: afterShared(sayAt("c", "b", 9)),
			fork:     afterShared(sayAt("f", "b", 5)),
		},
		"the fork has one branch alone": {
			original: withOlderBranch,
			fork:     afterShared(sayAt("f", "b", 9)),
		},
		"the original has an older branch too": {
			original: append(slices.Clone(withOlderBranch), sayAt("c", "b", 20)),
			fork:     afterShared(sayAt("f", "b", 30)),
		},
		"nothing was said in the fork yet": {
			original:    sharedBranch,
			fork:        sharedBranch,
			isUndecided: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProjects(t)
			p.putAs("s", c.original...)
			p.putAs("f", c.fork...)
			p.putAs("other", sayAt("z", "", 1))
			want := "s"
			if c.isUndecided {
				want = ""
			}
			for range 2 {
				require.Equal(t, want, p.about(t, "-w/f.jsonl").Parent)
				require.Empty(t, p.about(t, "-w/s.jsonl").Parent)
				require.Empty(t, p.about(t, "-w/other.jsonl").Parent)
				p = &projects{p.Fresh()}
				requireQuickList(t, p)
				p = &projects{p.Fresh()}
			}
		})
	}
}

// requireQuickList fails if a list of the project opens a session: the names in it do not depend on the records.
func requireQuickList(t *testing.T, p *projects) {
	shown := p.Format.(Format).Projects
	isQuick := func(c storagetest.Call) error {
		require.NotEqual(t, "Open", c.Op)
		return nil
	}
	shown.Raw = &storagetest.Hooked{Storage: shown.Raw.(storage.Storage), Before: isQuick}
	all := func(storage.Item) bool { return true }
	require.NoError(t, shown.List("-w", nil, all))
}

// TestForksOfForks: of several sessions that begin alike, each has the one that it was copied from for its parent.
func TestForksOfForks(t *testing.T) {
	p := newProjects(t)
	p.putAs("s", sharedBranch...)
	p.putAs("f", afterShared(sayAt("f", "b", 5))...)
	p.putAs("g", afterShared(sayAt("f", "b", 5), sayAt("g", "f", 9))...)
	require.Equal(t, "f", p.about(t, "-w/g.jsonl").Parent, "a fork of a fork")
	require.Equal(t, "s", p.about(t, "-w/f.jsonl").Parent)
	p.putAs("e", afterShared(sayAt("e", "b", 6))...)
	require.Equal(t, "s", p.about(t, "-w/f.jsonl").Parent, "not the other fork, which comes first by its name")
	p.put("-w/h.jsonl", sharedBranch...)
	require.Equal(t, "s", p.about(t, "-w/h.jsonl").Parent, "its records are those of the original")
}

// putAs writes a session whose records name it as theirs.
func (p *projects) putAs(id string, lines ...string) {
	text := strings.Join(lines, "\n")
	own := `"sessionId":"` + id + `"`
	p.put("-w/"+id+ending, strings.ReplaceAll(text, `"sessionId":"s"`, own))
}

// about returns the facts that a list has about a session.
func (p *projects) about(t *testing.T, name string) agents.About {
	obj, err := p.Files.Files.Open(name)
	require.NoError(t, err)
	defer obj.Close()
	st, err := obj.Stat()
	require.NoError(t, err)
	about, err := p.Format.About(name, obj, st.Size, true)
	require.NoError(t, err)
	return about
}
