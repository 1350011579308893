package costs

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// Costs adds up what sessions cost. It is safe for concurrent use; one caller at a time adds up, and the others wait.
type Costs struct {
	store  *sessioncore.Store
	prices report.Prices

	mu    sync.Mutex // guards the fields below; held while somebody adds up
	known map[string]*account
	size  int // of known, in bytes
	room  int // the most that size may be
	last  shown
}

// shown is the last text, as a reader asks for its size before opening it.
type shown struct {
	sessions []*listing.Info
	text     []byte
}

const (
	// maxKnown bounds what is kept of sessions, in bytes: enough for two million answers. What is beyond is read again
	// each time.
	maxKnown = 16 << 20
	// maxShown is the longest text that is kept, in bytes. Ten years of work in five directories have some 5 MB.
	maxShown = 1 << 20
)

// New returns the Costs of a store's sessions. Answers without a cost get one by prices.
func New(store *sessioncore.Store, prices report.Prices) *Costs {
	return &Costs{store: store, prices: prices, known: map[string]*account{}, room: maxKnown}
}

// Lines returns usage.jsonl for these sessions: a line for each day, working directory and model, in that order. Of
// the copies of an answer, that in the session that began first counts. Subagents of which no result says what they used have
// sessions of their own, whose cost counts for the sessions' directories. Sessions that cannot be read are left out, as
// everywhere. What is needed for the time of the call is counted in hold. When ctx is done, what was read is kept.
func (c *Costs) Lines(ctx context.Context, sessions []*listing.Info, hold *budget.Hold) ([]byte, error) {
	if err := storage.LockUntil(ctx, &c.mu); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	sessions = c.withSubagents(sessions)
	if c.last.text != nil && slices.Equal(c.last.sessions, sessions) {
		return c.last.text, nil
	}
	c.last = shown{}
	defer hold.Set(0)
	sums := newSums(hold)
	settled, err := c.addUp(ctx, oldestFirst(sessions), sums)
	if err != nil {
		return nil, err
	}
	text := sums.text()
	if settled && len(text) <= maxShown {
		c.last = shown{slices.Clone(sessions), text}
	}
	return text, nil
}

// oldestFirst sorts sessions by their beginning: a copy is younger than what it was made from. Those that do not tell
// when they began come last.
func oldestFirst(sessions []*listing.Info) []*listing.Info {
	return slices.SortedFunc(slices.Values(sessions), func(a, b *listing.Info) int {
		began, known := a.Created()
		other, otherKnown := b.Created()
		switch {
		case known != otherKnown && known:
			return -1
		case known != otherKnown:
			return 1
		}
		return cmp.Or(cmp.Compare(began, other), cmp.Compare(a.Name, b.Name))
	})
}

// subagents is the directory in that of a session that has the sessions of its subagents, where another agent has them. The
// results of its calls do not tell what these used.
const subagents = "subagents"

// withSubagents returns sessions and those of their subagents.
func (c *Costs) withSubagents(sessions []*listing.Info) []*listing.Info {
	files, all := c.store.Storage(), slices.Clip(sessions)
	with := map[string]map[string]bool{} // by directory: the names of the directories in it
	for _, info := range sessions {
		dir, base := path.Split(info.DirName())
		if with[dir] == nil {
			with[dir] = map[string]bool{}
			_ = files.List(strings.TrimSuffix(dir, "/"), nil, func(item storage.Item) bool {
				with[dir][item.Name] = item.Kind == storage.KindDir
				return true
			})
		}
		if !with[dir][base] {
			continue
		}
		at := path.Join(dir, base, subagents)
		_ = files.List(at, nil, func(item storage.Item) bool {
			if st, err := item.State(); err == nil && st.Kind == storage.KindFile && strings.HasSuffix(item.Name, sessioncore.FileEnding) {
				all = append(all, &listing.Info{Name: path.Join(at, item.Name), Stat: st, CWD: info.CWD})
			}
			return true
		})
	}
	return all
}

// addUp adds sessions to sums. It reports whether all of them are as they will be found if nothing changes: a file that
// was changed a moment ago may change again without a sign.
func (c *Costs) addUp(ctx context.Context, sessions []*listing.Info, sums *sums) (settled bool, err error) {
	settled = true
	for batch := range slices.Chunk(sessions, batchSize) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		changed, err := c.readAll(ctx, batch)
		if err != nil {
			return false, err
		}
		for i, info := range batch {
			a := c.known[info.Name]
			isKnown := a.isOf(info.Stat.Token)
			if !isKnown || a.left != sums.takenBefore(a.copies) {
				r := changed[i]
				if isKnown { // other sessions than before have some of its answers
					if r, err = c.readOne(ctx, info); err != nil {
						return false, err
					}
				}
				a = sums.account(r)
				settled = settled && a.Settled
				c.keep(info.Name, a)
			}
			if err := sums.add(info, a); err != nil {
				return false, err
			}
		}
	}
	c.forgetOthers(sessions)
	return settled, nil
}

// keep keeps what is known of a session, if there is room.
func (c *Costs) keep(name string, a *account) {
	c.forget(name)
	if size := a.size(name); c.size+size <= c.room {
		c.known[name] = a
		c.size += size
	}
}

func (c *Costs) forget(name string) {
	if old := c.known[name]; old != nil {
		c.size -= old.size(name)
		delete(c.known, name)
	}
}

// forgetOthers forgets the sessions that are gone.
func (c *Costs) forgetOthers(there []*listing.Info) {
	if len(c.known) <= len(there) {
		return
	}
	names := make(map[string]bool, len(there))
	for _, info := range there {
		names[info.Name] = true
	}
	for name := range c.known {
		if !names[name] {
			c.forget(name)
		}
	}
}

// account is what is kept of a session.
type account struct {
	listing.State
	// copies has the keys of its entries by which copies are known, each once.
	copies []uint64
	// left is which of them were left out of rows, as sessions that began earlier have them.
	left taken
	rows []row
}

// row is what a session cost on a day with a model.
type row struct {
	rowKey
	sum sum
}

// isOf reports whether a is about that state of the file. a may be nil.
func (a *account) isOf(token storage.Token) bool { return a != nil && a.Is(token) }

const (
	// rowSize and accountSize are what a row and an account take in memory, in bytes.
	rowSize     = 160
	accountSize = 256
)

func (a *account) size(name string) int {
	return accountSize + len(name) + 8*cap(a.copies) + rowSize*len(a.rows)
}
