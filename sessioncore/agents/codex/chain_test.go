package codex

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// problemsOf returns the lines of a session that are no entries, and the outline of the others.
func problemsOf(t *testing.T, session string) (problems, outline []string) {
	for line := range strings.Lines(session) {
		if line[0] == '"' {
			problems = append(problems, strings.TrimSpace(line))
		}
	}
	return problems, agentstest.Outline(t, session)
}

// TestBrokenChains: the content of a chain is shown once, and each part left out is a problem.
func TestBrokenChains(t *testing.T) {
	first := []string{metaOf(1, ""), user("one"), answered("1")}
	whole := []string{`l2 <  message user "one" [2]`, `l3 < l2 message assistant "1" stop [3]`}
	alone := []string{`l2 <  message user "mine" [2]`}
	// on returns a rollout that goes on from another one; all sizes have three digits.
	on := func(n, parent, size int) []string {
		base := fmt.Sprintf(`,"history_base":{"thread_id":%q,"end_byte_offset":%d}`, rolloutID(parent), size)
		return []string{metaOf(n, base), user(fmt.Sprintf("of %d", n))}
	}
	size := len(strings.Join(on(3, 4, 100), "\n")) + 1
	for name, c := range map[string]struct {
		base     string
		want     []string
		problems int
		why      string
	}{
		"gone":      {based(7, 3, first...), alone, 1, "not there"},
		"itself":    {based(2, 3, first...), alone, 1, "circle"},
		"in a line": {based(1, 3, first[0], first[1], "x"), append(whole[:1:1], `l3 < l2 message user "mine" [2]`), 1, "not JSON"},
		"beyond it": {strings.Replace(based(1, 3, first...), `offset":`, `offset":9`, 1),
			append(whole[:2:2], `l4 < l3 message user "mine" [2]`), 1, "whole lines"},
		"its meta":    {based(1, 1, first[0]), alone, 0, ""},
		"in its meta": {`,"history_base":{"thread_id":"` + rolloutID(1) + `","end_byte_offset":3}`, alone, 0, ""},
		"no number":   {`,"history_base":{"thread_id":"` + rolloutID(1) + `","end_byte_offset":-3}`, alone, 0, ""},
		"no thread":   {`,"history_base":{"thread_id":7,"end_byte_offset":3}`, alone, 0, ""},
		"gone behind": {based(5, 2, on(5, 7, 100)...), []string{`l2 <  message user "of 5" [2]`, `l3 < l2 message user "mine" [2]`}, 1, "not there"},
		"a circle of three": {based(3, 2, on(3, 4, size)...),
			[]string{`l2 <  message user "of 8" [2]`, `l3 < l2 message user "of 4" [2]`, `l4 < l3 message user "of 3" [2]`,
				`l5 < l4 message user "mine" [2]`}, 1, "circle"},
		"no line of it": {based(6, 2, metaOf(6, ""), "torn"), alone, 1, "whole lines"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.write(1, first...)
			h.write(3, on(3, 4, size)...)
			h.write(4, on(4, 8, size)...)
			h.write(8, on(8, 3, size)...)
			h.write(5, on(5, 7, 100)...)
			h.write(6, metaOf(6, ""))
			h.write(2, metaOf(2, c.base), user("mine"))
			problems, outline := problemsOf(t, h.read(2))
			require.Equal(t, c.want, outline[1:])
			require.Len(t, problems, c.problems)
			require.Contains(t, strings.Join(problems, ""), c.why)
		})
	}
}

// watched counts the files that are open, and the bytes that are read.
type watched struct {
	mu   sync.Mutex     // guards the fields below
	open int            // files
	most int            // the largest number of open files
	read map[string]int // bytes, by file
}

// newWatched returns a home whose files are watched.
func newWatched(t *testing.T) (*home, *watched) {
	dir := t.TempDir()
	w := &watched{read: map[string]int{}}
	hooked := &storagetest.Hooked{Storage: sessiontest.OpenDir(t, dir), After: w.note}
	return &home{agentstest.Open(t, "codex", dir, hooked)}, w
}

// note counts a call of the storage, and returns its error.
func (w *watched) note(c storagetest.Call, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch c.Op {
	case "Open":
		w.open++
		w.most = max(w.most, w.open)
	case "Close":
		w.open--
	case "ReadAt":
		w.read[c.Name] += c.Size
	}
	return err
}

// TestCircle: each of two rollouts that go on from one another has the other's lines once, and neither is read more than
// twice, but for its ends.
func TestCircle(t *testing.T) {
	sessiontest.NotUnderRace(t)
	h, w := newWatched(t)
	const lines = 3000
	long := strings.Repeat("x", 1000)
	// of returns the rollout of thread n, as long for any size of the part of the other one that it goes on from.
	of := func(n, other, size int) []string {
		base := fmt.Sprintf(`,"history_base":{"thread_id":%q,"end_byte_offset":%7d}`, rolloutID(other), size)
		all := []string{metaOf(n, base)}
		for i := range lines {
			all = append(all, user(fmt.Sprintf("%d says %04d %s", n, i, long)))
		}
		return all
	}
	size := len(strings.Join(of(1, 2, 0), "\n")) + 1
	h.write(1, of(1, 2, size)...)
	h.write(2, of(2, 1, size)...)
	for n := 1; n <= 2; n++ {
		clear(w.read)
		problems, outline := problemsOf(t, h.read(n))
		require.Len(t, problems, 1)
		require.Contains(t, problems[0], "circle")
		require.Len(t, outline, 1+2*lines)
		require.Contains(t, outline[1], fmt.Sprintf(`"%d says 0000`, 3-n))
		require.Contains(t, outline[lines+1], fmt.Sprintf(`"%d says 0000`, n))
		for name, bytes := range w.read {
			require.Less(t, bytes, 2*size+1<<20, name)
		}
	}
	require.Zero(t, w.open)
}

// writeChain writes n rollouts, each of which goes on from the one before.
func (h *home) writeChain(n int, more ...string) {
	before := []string(nil)
	for i := range n {
		lines := []string{metaOf(i, ""), user(fmt.Sprintf("turn %d", i))}
		if i > 0 {
			lines[0] = metaOf(i, based(i-1, 2, before...))
		}
		lines = append(lines, more...)
		h.Put(filepath.Join(days, chainName(i)), lines...)
		before = lines
	}
}

// chainName is name for a thread of any number.
func chainName(n int) string {
	return fmt.Sprintf("rollout-2026-03-30T07-00-00-%s.jsonl", rolloutID(n))
}

// TestLongChain: a chain of any length is whole, and the files that are open for it are few, also while all its
// sessions are open at once.
func TestLongChain(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const length = 300
	h, w := newWatched(t)
	h.writeChain(length, answered("well"))
	var group sync.WaitGroup
	objects := make([]storage.Object, length)
	for part := range 3 {
		group.Go(func() {
			for i := part; i < length; i += 3 {
				obj, err := h.Open(day + "/" + chainName(i))
				require.NoError(t, err)
				rest := storagetest.ReadObject(t, obj)
				require.Equal(t, 1+2*(i+1), strings.Count(rest, "\n"))
				for turn := range i + 1 {
					_, after, found := strings.Cut(rest, fmt.Sprintf(`"text":"turn %d"`, turn))
					require.True(t, found)
					rest = after
				}
				objects[i] = obj
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, w.most, length+3)
	for _, obj := range objects {
		require.NoError(t, obj.Close())
	}
	require.Zero(t, w.open)
	shown := 0
	for i := range length {
		st, err := os.Stat(filepath.Join(h.Dir, days, chainName(i)))
		require.NoError(t, err)
		shown += int(st.Size()) * (length - i)
	}
	all := 0
	for _, n := range w.read {
		all += n
	}
	require.Less(t, all, 5*shown)
}

// TestStateOfChain: the state of a session that goes on from others is told without a look at those, also when its
// conversion was given back.
func TestStateOfChain(t *testing.T) {
	h, w := newWatched(t)
	h.writeChain(40)
	tokens := map[int]storage.Token{}
	for i := range 40 { // more than are kept
		obj, err := h.Open(day + "/" + chainName(i))
		require.NoError(t, err)
		st, err := obj.Stat()
		require.NoError(t, err)
		require.NoError(t, obj.Close())
		tokens[i] = st.Token
	}
	w.most = 0
	for i := range 40 {
		require.Equal(t, tokens[i], storagetest.Stat(t, h, day+"/"+chainName(i)).Token, i)
	}
	require.Zero(t, w.most)
}

// TestParentChanges: a rollout whose parent is replaced, truncated or removed shows its new content, and never parts of
// both.
func TestParentChanges(t *testing.T) {
	first := []string{metaOf(1, ""), user("one"), answered("1")}
	for how, change := range map[string]func(t *testing.T, file string){
		"removed": func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) },
		"truncated": func(t *testing.T, file string) {
			require.NoError(t, os.Truncate(file, int64(len(first[0]+first[1])+2)))
		},
		"replaced": func(t *testing.T, file string) {
			require.NoError(t, os.Rename(file, file+".old"))
			sessiontest.WriteFile(t, file, strings.Join([]string{metaOf(1, ""), user("two"), answered("2"), ""}, "\n"))
		},
	} {
		t.Run(how, func(t *testing.T) {
			h := newHome(t)
			h.write(1, first...)
			h.write(2, metaOf(2, based(1, 3, first...)), user("mine"))
			early, err := h.Open(day + "/" + name(2))
			require.NoError(t, err)
			defer early.Close()
			_, before := problemsOf(t, h.read(2))
			require.Len(t, before, 4)
			change(t, filepath.Join(h.Dir, days, name(1)))
			storagetest.ReadObject(t, early) // the converted text stays
			h.write(2, metaOf(2, based(1, 3, first...)), user("mine"), user("more"))
			problems, after := problemsOf(t, h.read(2))
			require.Contains(t, after[len(after)-1], `"more"`)
			require.Equal(t, how != "replaced", len(problems) > 0, problems)
			switch how {
			case "removed":
				require.Len(t, after, 3)
			case "truncated":
				require.Len(t, after, 4)
			default:
				require.Contains(t, after[1], `"two"`)
			}
		})
	}
}
