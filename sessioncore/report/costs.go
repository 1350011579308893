package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Costs adds up the costs of all sessions by day, working directory and model, and counts an answer
// once in however many files it stands (docs/design.md section 5). It reads only sessions that
// changed. It keeps sums and a key for each answer, never text. It is safe for concurrent use; one
// caller at a time adds up, and the others wait.
type Costs struct {
	store       *sessioncore.Store
	read        readCosts
	zone        *time.Location // of the days
	hours       bool           // rows are of hours, not of days
	from, until time.Time      // bound the answers that count; zero for any

	mu    sync.Mutex // guards known; held while somebody adds up
	known cache[account]
}

const (
	// maxKnown bounds the accounts that are kept, in bytes: enough for 10,000 sessions with a
	// million answers and 20,000 subagents.
	maxKnown = 32 << 20
	// costsBatch is how many sessions are read before they are added up.
	costsBatch = 8
	// maxKeys bounds the answers that are added up at once: some 150 MiB of keys, the work of a
	// large team for years.
	maxKeys = 8 << 20
)

// sessionCosts are the costs of a session's entries, in file order, and its covers of its
// subagents.
type sessionCosts struct {
	records []usageRecord
	covers  []cover
}

type readCosts func(context.Context, *sessioncore.Snapshot) (sessionCosts, error)

// NewCosts returns the Costs of a store's sessions. Answers without a cost get one by prices.
func NewCosts(store *sessioncore.Store, prices Prices) *Costs {
	return newCosts(store, func(ctx context.Context, snap *sessioncore.Snapshot) (sessionCosts, error) {
		return costsOf(ctx, snap, prices)
	})
}

// NewCalls returns how often each tool was called, as Costs: the model is the tool, and its
// messages are the calls.
func NewCalls(store *sessioncore.Store) *Costs { return newCosts(store, callsOf) }

func newCosts(store *sessioncore.Store, read readCosts) *Costs {
	return &Costs{store: store, read: read, zone: time.UTC, known: newCache(maxKnown, account.size)}
}

// During makes c count by local days, or hours, and only answers at or after from and before until;
// zero for any. It is called before c is used.
func (c *Costs) During(from, until time.Time, hours bool) *Costs {
	c.zone, c.from, c.until, c.hours = time.Local, from, until, hours
	return c
}

// counts reports whether an answer at a time counts.
func (c *Costs) counts(at time.Time) bool {
	return !at.Before(c.from) && (c.until.IsZero() || at.Before(c.until))
}

// costsOf returns the costs of a session's entries. Their sum is total in usage.json.
func costsOf(ctx context.Context, s *sessioncore.Snapshot, prices Prices) (sessionCosts, error) {
	records, err := usageRecordsOf(ctx, s)
	if err != nil {
		return sessionCosts{}, err
	}
	return sessionCosts{prices.priced(records), coversOf(s, records)}, nil
}

// callsOf returns the results of tools, in file order, each as the cost of one message. Its model
// is the name of the tool as in path/.
func callsOf(ctx context.Context, s *sessioncore.Snapshot) (calls sessionCosts, err error) {
	for e := range sessioncore.Entry(s.Len()) {
		if isResult(s, e) {
			tool := strings.TrimPrefix(s.PathLabel(e), "toolResult-")
			call := usage{model: tool, Sum: Sum{AssistantMessages: 1}}
			calls.records = append(calls.records, usageRecord{e, copyKey(s, e, 0), s.Time(e).UnixMilli(), call})
		}
	}
	return calls, s.Confirm(ctx)
}

// lineKey is the subject of a line of usage.jsonl.
type lineKey struct {
	day             time.Time
	cwd, model, who string
}

// Lines returns usage.jsonl for these sessions: a line for each day, working directory, model and
// person, in that order. Of the copies of an answer, that in the session that began first counts.
// Subagents' sessions count for the directories of their callers, unless the result of a tool has
// their cost. Sessions that cannot be read are left out. The memory of the call is counted in hold.
// When ctx is done, the sessions that were read stay known.
func (c *Costs) Lines(ctx context.Context, sessions []*listing.Info, hold *budget.Hold) ([]byte, error) {
	if err := storage.LockUntil(ctx, &c.mu); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	defer hold.Close()
	all, callers := c.withSubagents(sessions)
	lines := map[lineKey]*Sum{}
	err := c.addUp(ctx, all, callers, func(r Row) error {
		addTo(lines, lineKey{r.Day, r.Session.CWD, r.Model, r.Session.Who()}, r.Sum)
		return hold.Resize(int64(len(lines)) * lineSize)
	})
	if err != nil {
		return nil, err
	}
	return linesText(lines), nil
}

// lineSize is the memory of a line of usage.jsonl, with its text, in bytes.
const lineSize = 800

// linesText returns usage.jsonl.
func linesText(lines map[lineKey]*Sum) []byte {
	text := []byte{}
	inOrder := slices.SortedFunc(maps.Keys(lines), func(a, b lineKey) int {
		byText := cmp.Or(cmp.Compare(a.cwd, b.cwd), cmp.Compare(a.model, b.model), cmp.Compare(a.who, b.who))
		return cmp.Or(a.day.Compare(b.day), byText)
	})
	for _, key := range inOrder {
		text = rawjson.AppendLine(text, struct { // docs/design.md section 5
			Day   string `json:"day"`
			CWD   string `json:"cwd"`
			Model string `json:"model"`
			Who   string `json:"who,omitempty"` // where there are several people
			*Sum
		}{key.day.Format(time.DateOnly), names.TextUTF8(key.cwd), key.model, key.who, lines[key]})
	}
	return text
}

// Row is the cost of a session on a day, with a model.
type Row struct {
	Session *listing.Info // itself, or the caller of a subagent
	Day     time.Time     // the beginning of the day, or hour, of this name in UTC
	Model   string
	Sum     *Sum
}

// Rows calls each with all that the lines of usage.jsonl are sums of, in no order.
func (c *Costs) Rows(ctx context.Context, sessions []*listing.Info, each func(Row)) error {
	if err := storage.LockUntil(ctx, &c.mu); err != nil {
		return err
	}
	defer c.mu.Unlock()
	all, callers := c.withSubagents(sessions)
	return c.addUp(ctx, all, callers, func(r Row) error {
		each(r)
		return nil
	})
}

// dayOf returns the Day of a Row at a time.
func (c *Costs) dayOf(at time.Time) time.Time {
	at = at.In(c.zone)
	year, month, day := at.Date()
	hour := 0
	if c.hours {
		hour = at.Hour()
	}
	return time.Date(year, month, day, hour, 0, 0, 0, time.UTC)
}

// account is the part of a session's costs that counts there.
type account struct {
	// copies has the keys of its entries by which copies are known, each once.
	copies []uint64
	// left is the sum of those of them that were left out of rows, as sessions that began earlier
	// have them.
	left uint64
	// covers are the spans for which it has its subagents' costs; above is a hash of the covers of
	// its callers.
	covers []cover
	above  uint64
	rows   []row
}

// row is the cost of a session on a day with a model.
type row struct {
	rowKey
	sum Sum
}

type rowKey struct {
	day   time.Time
	model string
}

const (
	// rowSize, accountSize and coverSize are the sizes of a row, an account and a cover in memory,
	// in bytes.
	rowSize     = 184
	accountSize = 288
	coverSize   = 24
)

func (a account) size() int {
	return accountSize + 8*cap(a.copies) + rowSize*len(a.rows) + coverSize*cap(a.covers)
}

// addUp calls each with the costs of the sessions that were not counted yet. Those of subagents
// count for their callers.
func (c *Costs) addUp(
	ctx context.Context, sessions []*listing.Info, callers map[*listing.Info]*listing.Info, each func(Row) error,
) error {
	seen, covers, done := map[uint64]struct{}{}, covers{}, 0
	for batch := range slices.Chunk(sessions, costsBatch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		changed, err := readSessions(ctx, c.store, batch, c.known.has, c.read)
		if err != nil {
			return err
		}
		for i, info := range batch {
			a, err := c.accountOf(ctx, info, changed[i], seen, covers.above(info))
			if err != nil {
				return err
			}
			for j := range a.rows {
				r := &a.rows[j]
				if err := each(Row{cmp.Or(callers[info], info), r.day, r.model, &r.sum}); err != nil {
					return err
				}
			}
			for _, key := range a.copies {
				seen[key] = struct{}{}
			}
			if len(seen) > maxKeys {
				return fmt.Errorf("%w: there are more than %d answers; add up fewer sessions at once",
					budget.ErrNoMemory, maxKeys)
			}
			covers[info.DirName()] = a.covers
		}
		done += len(batch)
		storage.Progress(ctx, done, len(sessions))
	}
	c.known.keepOnly(sessions)
	return nil
}

// oldestFirst sorts sessions by their beginning: a copy is younger than its original. Sessions
// without a time come last.
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
		return cmp.Or(cmp.Compare(began, other), cmp.Compare(a.Name(), b.Name()))
	})
}

// sumOfSeen returns the sum of the copies that were counted in other sessions: it tells two sets of
// them apart.
func sumOfSeen(copies []uint64, seen map[uint64]struct{}) (sum uint64) {
	for _, key := range copies {
		if _, ok := seen[key]; ok {
			sum += key
		}
	}
	return sum
}

// accountOf returns the account of a session: the known one, unless its file or the part of it that
// counts elsewhere changed. read has the costs of a changed file.
func (c *Costs) accountOf(
	ctx context.Context, info *listing.Info, read reading[sessionCosts], seen map[uint64]struct{}, above []cover,
) (account, error) {
	a, isKnown := c.known.get(info)
	if isKnown && a.left == sumOfSeen(a.copies, seen) && a.above == keyOf(above) {
		return a, nil
	}
	if isKnown {
		isNot := func(*listing.Info) bool { return false }
		again, err := readSessions(ctx, c.store, []*listing.Info{info}, isNot, c.read)
		if err != nil {
			return a, err
		}
		read = again[0]
	}
	a = c.newAccount(&read.of, seen, above)
	c.known.keep(info.Name(), reading[account]{read.token, read.settled, a})
	return a, nil
}

// newAccount returns the costs of a session that were not counted yet, in itself or, by above, in
// the sessions that called it. An entry that stands in the file twice counts once.
func (c *Costs) newAccount(of *sessionCosts, seen map[uint64]struct{}, above []cover) account {
	a := account{covers: slices.Clip(of.covers), above: keyOf(above)}
	rows := map[rowKey]*Sum{}
	own := make(map[uint64]bool, len(of.records))
	for i := range of.records {
		r := &of.records[i]
		if r.copy != 0 {
			if own[r.copy] {
				continue
			}
			own[r.copy] = true
			a.copies = append(a.copies, r.copy)
			if _, ok := seen[r.copy]; ok {
				a.left += r.copy
				continue
			}
		}
		at := time.UnixMilli(r.time)
		if left, ok := r.beyond(above); ok && c.counts(at) {
			addTo(rows, rowKey{c.dayOf(at), r.model}, &left)
		}
	}
	a.copies = slices.Clip(a.copies)
	for key, of := range rows {
		key.model = unique.Make(key.model).Value() // sessions have the same few models
		a.rows = append(a.rows, row{key, *of})
	}
	return a
}

// Groups are sums of rows by names. The zero value has none.
type Groups struct{ groups map[string]*Group }

// Group is one of them.
type Group struct {
	Name string
	Sum
	sessions map[*listing.Info]bool
}

// Sessions returns how many sessions have a part in it.
func (g *Group) Sessions() int { return len(g.sessions) }

// Add adds a row to the group of a name.
func (g *Groups) Add(name string, r *Row) {
	if g.groups == nil {
		g.groups = map[string]*Group{}
	}
	of := g.groups[name]
	if of == nil {
		of = &Group{Name: name, sessions: map[*listing.Info]bool{}}
		g.groups[name] = of
	}
	of.Sum.Add(r.Sum)
	of.sessions[r.Session] = true
}

// All returns the groups, in no order.
func (g *Groups) All() []*Group { return slices.Collect(maps.Values(g.groups)) }
