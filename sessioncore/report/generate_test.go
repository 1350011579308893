package report

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// testStore is a directory of sessions, made by a program that works like a client, and by our own forks.
type testStore struct {
	t     *testing.T
	root  string
	files *opens
	store *sessioncore.Store
	list  *listing.Listing
	write *writer.Writer
	rnd   *rand.Rand
	now   time.Time
	names []string
}

// opens is a storage that notes which files are opened.
type opens struct {
	storage.Storage
	mu     sync.Mutex // guards names
	names  map[string]bool
	onOpen func()
}

func (o *opens) Open(name string) (storage.Object, error) {
	o.mu.Lock()
	o.names[name] = true
	o.mu.Unlock()
	if o.onOpen != nil {
		o.onOpen()
	}
	return o.Storage.Open(name)
}

func newTestStore(t *testing.T, seed uint64) *testStore {
	root := t.TempDir()
	s := &testStore{
		t: t, root: root, rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 30, 20, 0, 0, 0, time.UTC),
		files: &opens{Storage: sessiontest.OpenDir(t, root), names: map[string]bool{}},
	}
	s.store = sessioncore.NewStore(s.files)
	s.store.Keep(1)
	t.Cleanup(s.store.Close)
	s.list = listing.New(s.store, root)
	s.write = writer.New(s.store, writer.Options{Journal: s.files, Root: root, LiveAllow: true, Now: s.tick})
	return s
}

// tick returns the time, which goes on by less than a day.
func (s *testStore) tick() time.Time {
	s.now = s.now.Add(time.Duration(s.rnd.Int64N(int64(5 * time.Hour))))
	return s.now
}

func (s *testStore) stamp() string { return s.tick().Format("2006-01-02T15:04:05.000Z") }

// object is a line of a session file.
type object map[string]any

// put writes a session file and returns its name.
func (s *testStore) put(dir string, header object, entries []object) string {
	id := header["id"].(string)
	name := filepath.Join(dir, strings.NewReplacer(":", "-", ".", "-").Replace(header["timestamp"].(string))+"_"+id+".jsonl")
	sessiontest.WriteFile(s.t, filepath.Join(s.root, name), s.linesOf(append([]object{header}, entries...)))
	s.names = append(s.names, name)
	return name
}

// add appends entries to a file as another program would.
func (s *testStore) add(name string, entries []object) {
	sessiontest.AppendTo(s.t, filepath.Join(s.root, name), s.linesOf(entries))
}

// linesOf returns a line for each of some objects.
func (s *testStore) linesOf(objects []object) string {
	var text strings.Builder
	for _, o := range objects {
		line, err := json.Marshal(o)
		require.NoError(s.t, err)
		text.Write(append(line, '\n'))
	}
	return text.String()
}

// get reads a session file.
func (s *testStore) get(name string) (header object, entries []object) {
	text, err := os.ReadFile(filepath.Join(s.root, name))
	require.NoError(s.t, err)
	for line := range strings.Lines(string(text)) {
		var o object
		require.NoError(s.t, json.Unmarshal([]byte(line), &o))
		entries = append(entries, o)
	}
	return entries[0], entries[1:]
}

func (s *testStore) one(of ...string) string { return of[s.rnd.IntN(len(of))] }

func (s *testStore) header(cwd string) object {
	return object{"type": "session", "version": 3, "id": fmt.Sprintf("%016x", s.rnd.Uint64()), "timestamp": s.stamp(), "cwd": cwd}
}

// dollars is an amount whose sums are exact in any order.
func (s *testStore) dollars() float64 { return float64(s.rnd.IntN(1000)) / 1024 }

func (s *testStore) usage() object {
	return object{
		"input": s.rnd.IntN(1000), "output": s.rnd.IntN(1000), "cacheRead": s.rnd.IntN(100_000), "cacheWrite": s.rnd.IntN(1000),
		"premiumRequests": s.rnd.IntN(2),
		"cost":            object{"input": s.dollars(), "output": s.dollars(), "cacheRead": s.dollars(), "cacheWrite": s.dollars(), "total": s.dollars()},
	}
}

// entries returns n entries of a conversation that goes on after others. Ids are few, so that sessions share some.
func (s *testStore) entries(after []object, n int) (made []object) {
	all := slices.Clone(after)
	for range n {
		e := object{"type": "message", "id": fmt.Sprintf("%04x", s.rnd.IntN(1<<16)), "parentId": nil, "timestamp": s.stamp()}
		if len(all) > 0 {
			at := len(all) - 1
			if s.rnd.IntN(5) == 0 {
				at = s.rnd.IntN(len(all))
			}
			e["parentId"] = all[at]["id"]
		}
		switch s.rnd.IntN(10) {
		case 0, 1:
			e["message"] = object{"role": "user", "content": "text"}
		case 2:
			e["message"] = object{"role": "toolResult", "toolCallId": "c", "toolName": "task", "content": []any{}, "details": object{"usage": s.usage()}}
		case 3:
			e["type"], e["provider"], e["model"], e["usage"] = "model_usage", "p", "tiny", s.usage()
		case 4:
			if len(all) > 0 {
				e["type"], e["targetId"], e["label"] = "label", all[s.rnd.IntN(len(all))]["id"], "a label"
			}
		default:
			e["message"] = object{
				"role": "assistant", "content": []any{object{"type": "text", "text": "x"}}, "provider": s.one("p", "q"),
				"model": s.one("large", "small"), "usage": s.usage(),
			}
		}
		if s.rnd.IntN(50) == 0 {
			delete(e, "timestamp")
		}
		all, made = append(all, e), append(made, e)
	}
	return made
}

// grow makes the store have n sessions, most of them forks.
func (s *testStore) grow(n int) {
	for len(s.names) < n {
		cwd := s.one("/home/dev/a", "/home/dev/b", "/c")
		dir := s.one("x", "y")
		if len(s.names) == 0 || s.rnd.IntN(6) == 0 {
			s.put(dir, s.header(cwd), s.entries(nil, s.rnd.IntN(12)))
			continue
		}
		from := s.names[s.rnd.IntN(len(s.names))]
		parent, entries := s.get(from)
		if len(entries) == 0 {
			continue
		}
		header := s.header(cwd)
		switch s.rnd.IntN(5) {
		case 0: // our fork
			s.names = append(s.names, s.fork(from, entries[s.rnd.IntN(len(entries))]["id"].(string)))
			s.add(s.names[len(s.names)-1], s.entries(entries[:1], s.rnd.IntN(5)))
		case 1: // fork, and forkFrom with its other working directory
			header["parentSession"] = parent["id"]
			s.put(dir, header, append(entries, s.entries(entries, s.rnd.IntN(5))...))
		case 2: // forkFrom for a session beside another one, which pays for itself
			header["parentSession"] = parent["id"]
			s.put(dir, header, append(withoutCost(entries), s.entries(entries, s.rnd.IntN(5))...))
		case 3: // createBranchedSession
			header["parentSession"] = filepath.Join(s.root, from)
			s.put(dir, header, slices.DeleteFunc(entries, func(object) bool { return s.rnd.IntN(2) == 0 }))
		case 4: // a copy by hand, which the user goes on with
			s.put(s.one("x", "y", "z"), parent, append(entries, s.entries(entries, s.rnd.IntN(3))...))
			s.names = slices.Compact(slices.Sorted(slices.Values(s.names)))
		}
	}
}

func (s *testStore) fork(from, id string) string {
	name, err := s.write.Fork(context.Background(), s.store.Session(from), id)
	require.NoError(s.t, err)
	return name
}

// withoutCost returns entries as the client takes them over for a session that shall not pay for them.
func withoutCost(entries []object) (free []object) {
	for _, e := range entries {
		text, _ := json.Marshal(e)
		var copied object
		_ = json.Unmarshal(text, &copied)
		for _, u := range reportedUsages(copied) {
			u["cost"] = object{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
			delete(u, "premiumRequests")
		}
		free = append(free, copied)
	}
	return free
}
