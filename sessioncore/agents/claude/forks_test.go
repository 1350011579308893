package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestForks: a fork whose records do not name the original has it for its parent all the same, and never the other
// way round.
func TestForks(t *testing.T) {
	say := func(uuid, parent string, second int) string {
		return strings.Replace(user(uuid, parent, "go"), `"timestamp":"2026-03-30T07:13:41.000Z"`,
			fmt.Sprintf(`"timestamp":"2026-03-30T08:00:%02d.000Z"`, second), 1)
	}
	require.Contains(t, say("a", "", 7), "08:00:07")
	shared := []string{say("a", "", 1), say("b", "a", 2)}
	with := func(lines ...string) []string { return append(append([]string(nil), shared...), lines...) }
	for name, c := range map[string]struct {
		original, fork []string
		undecided      bool
	}{
		"the original did not go on":    {original: shared, fork: with(say("f", "b", 9))},
		"both went on, the fork first":  {original: with(say("c", "b", 9)), fork: with(say("f", "b", 5))},
		"the fork has one branch alone": {original: []string{say("a", "", 1), say("x", "a", 1), say("b", "a", 2)}, fork: with(say("f", "b", 9))},
		"the original has an older branch too": {original: []string{say("a", "", 1), say("x", "a", 1), say("b", "a", 2), say("c", "b", 20)},
			fork: with(say("f", "b", 30))},
		"nothing was said in the fork yet": {original: shared, fork: shared, undecided: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProjects(t)
			p.putAs("s", c.original...)
			p.putAs("f", c.fork...)
			p.putAs("other", say("z", "", 1))
			want := "s"
			if c.undecided {
				want = ""
			}
			for range 2 {
				require.Equal(t, want, p.about(t, "-w/f.jsonl").Parent)
				require.Empty(t, p.about(t, "-w/s.jsonl").Parent)
				require.Empty(t, p.about(t, "-w/other.jsonl").Parent)
				p = &projects{p.Fresh()}
				shown := p.Format.(Format).Projects
				isQuick := func(c storagetest.Call) error {
					require.NotEqual(t, "Open", c.Op, "the names in a project do not depend on what its sessions say")
					return nil
				}
				shown.Raw = &storagetest.Hooked{Storage: shown.Raw.(storage.Storage), Before: isQuick}
				require.NoError(t, shown.List("-w", nil, func(storage.Item) bool { return true }))
				p = &projects{p.Fresh()}
			}
		})
	}
	p := newProjects(t)
	p.putAs("s", shared...)
	p.putAs("f", with(say("f", "b", 5))...)
	p.putAs("g", with(say("f", "b", 5), say("g", "f", 9))...)
	require.Equal(t, "f", p.about(t, "-w/g.jsonl").Parent, "a fork of a fork")
	require.Equal(t, "s", p.about(t, "-w/f.jsonl").Parent)
	p.putAs("e", with(say("e", "b", 6))...)
	require.Equal(t, "s", p.about(t, "-w/f.jsonl").Parent, "not the other fork, which comes first by its name")
	p.put("-w/h.jsonl", shared...)
	require.Equal(t, "s", p.about(t, "-w/h.jsonl").Parent, "its records are those of the original")
}

// putAs writes a session whose records name it as theirs.
func (p *projects) putAs(id string, lines ...string) {
	p.put("-w/"+id+ending, strings.ReplaceAll(strings.Join(lines, "\n"), `"sessionId":"s"`, `"sessionId":"`+id+`"`))
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
