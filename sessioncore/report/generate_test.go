package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// testStore is a store of sessions that notes which files are opened.
type testStore struct {
	*memory.Storage
	t     *testing.T
	store *sessioncore.Store
	list  *listing.Listing

	mu     sync.Mutex // guards opened
	opened map[string]bool
	onOpen func()
}

// newTestStore returns an empty store, which keeps the index of one session.
func newTestStore(t *testing.T) *testStore {
	s := &testStore{Storage: memory.New(), t: t, opened: map[string]bool{}}
	s.store = sessioncore.NewStore(s)
	s.store.Keep(1)
	t.Cleanup(s.store.Close)
	s.list = listing.New(s.store, "/agent/sessions")
	return s
}

// Open notes that a file is opened, and calls onOpen before that, unless it is nil.
func (s *testStore) Open(name string) (storage.Object, error) {
	s.mu.Lock()
	s.opened[name] = true
	s.mu.Unlock()
	if s.onOpen != nil {
		s.onOpen()
	}
	return s.Storage.Open(name)
}

// put writes a file, long enough ago that its times would show another change.
func (s *testStore) put(name, text string) {
	require.NoError(s.t, s.WriteFile(name, []byte(text)))
	require.NoError(s.t, s.Chtimes(name, time.Now().Add(-time.Hour)))
}

// sessions lists the sessions. From then on their files count as not opened.
func (s *testStore) sessions() []*listing.Info {
	sessions, err := s.list.Sessions(s.t.Context())
	require.NoError(s.t, err)
	clear(s.opened)
	return sessions.All()
}

// madeEntry is an entry of a made session. Its model is "" if it reports no usage.
type madeEntry struct {
	id, at, model string // at is "" for one without a timestamp
	Sum
}

// line returns the line of the entry in a session file. The model decides about its form.
func (e *madeEntry) line() string {
	usage, _ := json.Marshal(&e.Sum)
	provider, model, _ := strings.Cut(e.model, "/")
	text := `"type":"message","message":{"role":"user","content":"text"}`
	switch e.model {
	case "":
	case subagentsModel:
		text = fmt.Sprintf(`"type":"message","message":{"role":"toolResult","toolName":"task","content":[],"details":{"usage":%s}}`, usage)
	case "p/tiny":
		text = fmt.Sprintf(`"type":"model_usage","provider":"p","model":"tiny","usage":%s`, usage)
	default:
		text = fmt.Sprintf(`"type":"message","message":{"role":"assistant","content":[],"provider":%q,"model":%q,"usage":%s}`, provider, model, usage)
	}
	if e.at != "" {
		text += fmt.Sprintf(`,"timestamp":%q`, e.at)
	}
	return fmt.Sprintf(`{"id":%q,"parentId":null,%s}`+"\n", e.id, text)
}

// madeSession is a session, perhaps with copies of entries of others.
type madeSession struct {
	name, id, began, cwd string
	entries              []madeEntry
}

// generator makes sessions as clients do. Amounts are such that their sums are exact in any order.
type generator struct {
	*testStore
	rnd  *rand.Rand
	now  time.Time
	made []*madeSession
}

func newGenerator(t *testing.T, seed uint64) *generator {
	return &generator{
		testStore: newTestStore(t),
		rnd:       rand.New(rand.NewPCG(seed, 1)),
		now:       time.Date(2026, 1, 30, 20, 0, 0, 0, time.UTC), // so that days and a month soon end
	}
}

// tick returns the time, which goes on by less than a day.
func (g *generator) tick() string {
	g.now = g.now.Add(time.Duration(g.rnd.Int64N(int64(5 * time.Hour))))
	return g.now.Format("2006-01-02T15:04:05.000Z")
}

// entry returns a new entry. Ids are few, so that sessions share some.
func (g *generator) entry() madeEntry {
	n := func(most int) amount { return amount(g.rnd.IntN(most)) }
	dollars := func() Decimal { return decimalOf(float64(n(1000) / 1024)) } // exact in binary
	e := madeEntry{id: fmt.Sprintf("%04x", g.rnd.IntN(1<<16)), at: g.tick()}
	if g.rnd.IntN(50) == 0 {
		e.at = ""
	}
	models := []string{"", "", subagentsModel, "p/tiny", "p/large", "p/small", "q/large", "q/small", "q/small"}
	e.model = models[g.rnd.IntN(len(models))]
	if e.model == "" {
		return e
	}
	e.Sum = Sum{
		Input:           n(1000),
		Output:          n(1000),
		CacheRead:       n(100_000),
		CacheWrite:      n(1000),
		PremiumRequests: decimalOf(float64(n(2))),
	}
	e.Cost = usageCost{
		Input:      dollars(),
		Output:     dollars(),
		CacheRead:  dollars(),
		CacheWrite: dollars(),
		Total:      dollars(),
	}
	e.TotalTokens = e.Input + e.Output + e.CacheRead + e.CacheWrite
	if e.model != subagentsModel && e.model != "p/tiny" {
		e.AssistantMessages = 1
	}
	return e
}

// write adds up to most new entries to a session, and writes its file.
func (g *generator) write(s *madeSession, most int) {
	for range g.rnd.IntN(most) {
		s.entries = append(s.entries, g.entry())
	}
	text := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":%q}`+"\n", s.id, s.began, s.cwd)
	for _, e := range s.entries {
		text += e.line()
	}
	g.put(s.name, text)
}

// grow makes the store have n sessions, most of them with the entries of another one: a fork, one for a session beside
// another one, which pays for itself, a branch, or a copy by hand.
func (g *generator) grow(n int) {
	for len(g.made) < n {
		directories := []string{"/home/dev/a", "/home/dev/b", "/c"}
		s := &madeSession{
			id:    fmt.Sprintf("%016x", g.rnd.Uint64()),
			began: g.tick(),
			cwd:   directories[g.rnd.IntN(len(directories))],
		}
		s.name = fmt.Sprintf("%c/%s.jsonl", 'x'+rune(g.rnd.IntN(3)), s.id)
		if len(g.made) > 0 && g.rnd.IntN(6) > 0 {
			from := g.made[g.rnd.IntN(len(g.made))]
			s.entries = slices.Clone(from.entries)
			switch g.rnd.IntN(4) { // otherwise it is a fork
			case 0: // it is beside the other one, and pays for itself
				for i := range s.entries {
					s.entries[i].Cost = usageCost{}
					s.entries[i].PremiumRequests = Decimal{}
				}
			case 1: // it is a branch
				s.entries = slices.DeleteFunc(s.entries, func(madeEntry) bool { return g.rnd.IntN(2) == 0 })
			case 2: // it is a copy by hand
				s.id = from.id
				s.began = from.began
				s.cwd = from.cwd
			}
		}
		g.write(s, 6)
		g.made = append(g.made, s)
	}
}
