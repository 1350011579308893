package costs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// Costs adds up what sessions cost. It is safe for concurrent use; one caller at a time adds up, and the others wait.
type Costs struct {
	store *sessioncore.Store
	of    func(context.Context, *sessioncore.Snapshot) (report.Costs, error) // the costs of a session's entries

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
	// maxKnown bounds the accounts that are kept of sessions, in bytes: enough for 10,000 sessions with a million answers and
	// 20,000 subagents. Sessions beyond that are read again each time.
	maxKnown = 32 << 20
	// maxShown is the longest text that is kept, in bytes. Ten years of work in five directories have some 5 MB.
	maxShown = 1 << 20
)

// New returns the Costs of a store's sessions. Answers without a cost get one by prices.
func New(store *sessioncore.Store, prices report.Prices) *Costs {
	return newOf(store, func(ctx context.Context, snap *sessioncore.Snapshot) (report.Costs, error) {
		return report.CostsOf(ctx, snap, prices)
	})
}

// OfTools returns how often each tool was called, as Costs: the model is the tool, and its messages are the calls.
func OfTools(store *sessioncore.Store) *Costs { return newOf(store, report.CallsOf) }

func newOf(store *sessioncore.Store, of func(context.Context, *sessioncore.Snapshot) (report.Costs, error)) *Costs {
	return &Costs{store: store, of: of, known: map[string]*account{}, room: maxKnown}
}

// Lines returns usage.jsonl for these sessions: a line for each day, working directory, model and person, in that order. Of
// the copies of an answer, that in the session that began first counts. Subagents have sessions of their own, whose cost counts
// for the sessions' directories, unless the result of a tool has it. Sessions that cannot be read are left out, as
// everywhere. What is needed for the time of the call is counted in hold. When ctx is done, what was read is kept.
func (c *Costs) Lines(ctx context.Context, sessions []*listing.Info, hold *budget.Hold) ([]byte, error) {
	if err := storage.LockUntil(ctx, &c.mu); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	sessions, of := c.withSubagents(sessions)
	isSame := func(old, now *listing.Info) bool {
		return old == now || of[now] != nil && old.Name() == now.Name() && old.CWD == now.CWD && stateOf(old) == stateOf(now)
	}
	if c.last.text != nil && slices.EqualFunc(c.last.sessions, sessions, isSame) {
		return c.last.text, nil
	}
	c.last = shown{}
	defer hold.Set(0)
	lines := lines{}
	settled, err := c.addUp(ctx, oldestFirst(sessions), &sums{}, func(info *listing.Info, r *row) error {
		report.AddTo(lines, lineKey{r.day, info.CWD, r.model, cmp.Or(of[info], info).Who()}, &r.sum)
		return hold.Resize(int64(len(lines)) * lineSize)
	})
	if err != nil {
		return nil, err
	}
	text := lines.text()
	if settled && len(text) <= maxShown {
		c.last = shown{slices.Clone(sessions), text}
	}
	return text, nil
}

// stateOf tells the states of a session's file apart. The size of one of another agent is known only once it was read.
func stateOf(info *listing.Info) storage.Token {
	token := info.Stat.Token
	token.Size = 0
	return token
}

// Row is what a session cost on a day, with a model.
type Row struct {
	Session *listing.Info // of which it is, or a subagent of which
	Day     time.Time     // in UTC
	Model   string
	Sum     *report.Sum
}

// Rows calls each with all that the lines of usage.jsonl are sums of, in no order.
func (c *Costs) Rows(ctx context.Context, sessions []*listing.Info, each func(Row)) error {
	if err := storage.LockUntil(ctx, &c.mu); err != nil {
		return err
	}
	defer c.mu.Unlock()
	all, of := c.withSubagents(sessions)
	_, err := c.addUp(ctx, oldestFirst(all), &sums{}, func(info *listing.Info, r *row) error {
		each(Row{cmp.Or(of[info], info), time.UnixMilli(r.day * dayLength).UTC(), r.model, &r.sum})
		return nil
	})
	return err
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
		if c := cmp.Compare(began, other); c != 0 {
			return c
		}
		return cmp.Compare(a.Name(), b.Name())
	})
}

// addUp calls each with what of the sessions was not counted yet. It reports whether all of them are as they will be found if nothing changes: a file that
// was changed a moment ago may change again without a sign.
func (c *Costs) addUp(ctx context.Context, sessions []*listing.Info, sums *sums, each func(*listing.Info, *row) error) (settled bool, err error) {
	settled = true
	covers := covers{}
	for batch := range slices.Chunk(sessions, batchSize) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		changed, err := c.readAll(ctx, batch)
		if err != nil {
			return false, err
		}
		for i, info := range batch {
			a := c.known[info.Name()]
			isKnown := a.isOf(info.Stat.Token)
			above := covers.above(info)
			if !isKnown || a.left != sums.takenBefore(a.copies) || a.above != keyOf(above) {
				r := changed[i]
				if isKnown { // other sessions than before have some of its answers
					if r, err = c.readOne(ctx, info); err != nil {
						return false, err
					}
				}
				a = sums.account(r, above)
				settled = settled && a.Settled
				c.keep(info.Name(), a)
			}
			if err := sums.add(info, a, each); err != nil {
				return false, err
			}
			covers[info.DirName()] = a.covers
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
		names[info.Name()] = true
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
	// covers are the spans for which it has its subagents' costs; above is a hash of the covers of its callers.
	covers []report.Cover
	above  uint64
	rows   []row
}

// row is the cost of a session on a day with a model.
type row struct {
	rowKey
	sum sum
}

// isOf reports whether a is about that state of the file. a may be nil.
func (a *account) isOf(token storage.Token) bool { return a != nil && a.Is(token) }

const (
	// rowSize, accountSize and coverSize are the sizes of a row, an account and a cover in memory, in bytes.
	rowSize     = 168
	accountSize = 288
	coverSize   = 24
)

func (a *account) size(name string) int {
	return accountSize + len(name) + 8*cap(a.copies) + rowSize*len(a.rows) + coverSize*cap(a.covers)
}
