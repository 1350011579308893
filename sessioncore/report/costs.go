package report

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unique"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/ledger"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Costs adds up the costs of all sessions by day, working directory and model, and counts an answer
// once in however many files it stands (docs/design.md section 5). It reads only sessions that
// changed. It keeps sums and a key for each answer, never text. It is safe for concurrent use.
type Costs struct {
	cache[sessionCosts, account]
	zone        *time.Location // of the days
	hours       bool           // rows are of hours, not of days
	from, until time.Time      // bound the answers that count; zero for any
	kept        *ledger.Book   // has charges of sessions that were read before; may be nil
}

const (
	// maxKnown bounds the accounts that are kept, in bytes: enough for 10,000 sessions with a
	// million answers and 20,000 subagents.
	maxKnown = 32 << 20
	// costsBatch is how many sessions are read before they are added up.
	costsBatch = 8
	// maxKeys bounds the answers that are added up at once: some 100 MiB of keys, the work of a
	// large team for years.
	maxKeys = 8 << 20
)

// sessionCosts are the costs of a session's entries, in file order, and its covers of its
// subagents.
type sessionCosts struct {
	records []usageRecord
	covers  []cover
}

// NewCosts returns the Costs of a store's sessions. Answers without a cost get one by prices.
func NewCosts(store *sessioncore.Store, prices Prices) *Costs {
	read := func(ctx context.Context, snap *sessioncore.Snapshot) (sessionCosts, error) {
		return costsOf(ctx, snap, prices)
	}
	c := newCosts(store, read)
	c.readFile = func(ctx context.Context, info *listing.Info, file storage.Object) (sessionCosts, bool, error) {
		return c.chargesOf(ctx, info, file, prices)
	}
	return c
}

// NewCalls returns how often each tool was called, as Costs: the model is the tool, and its
// messages are the calls.
func NewCalls(store *sessioncore.Store) *Costs { return newCosts(store, callsOf) }

// newCosts returns Costs that read makes of each session.
func newCosts(
	store *sessioncore.Store, read func(context.Context, *sessioncore.Snapshot) (sessionCosts, error),
) *Costs {
	return &Costs{zone: time.UTC, cache: cache[sessionCosts, account]{
		store:  store,
		read:   read,
		sizeOf: account.size,
		most:   maxKnown,
		batch:  costsBatch,
		known:  map[string]cached[account]{},
	}}
}

// During makes c count by local days, or hours, and only answers at or after from and before until;
// zero for any. It is called before c is used.
func (c *Costs) During(from, until time.Time, hours bool) *Costs {
	c.zone = time.Local
	c.from = from
	c.until = until
	c.hours = hours
	return c
}

// Recall makes c take the charges of sessions from a file, which keeps new ones. It is called before c is used.
func (c *Costs) Recall(kept *ledger.Book) *Costs {
	c.kept = kept
	return c
}

// counts reports whether an answer at a time is within the bounds of During.
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

// mayBeCut is the size of a label in bytes that may be only the beginning of a tool's name, or more.
const mayBeCut = 28

// toolOf returns the name of the tool of a result, as its label in path/ has it. The label may have only the
// beginning of a long name, which is then read from the entry, if that has it.
func toolOf(s *sessioncore.Snapshot, e sessioncore.Entry) (string, error) {
	label := s.PathLabel(e)
	tool := strings.TrimPrefix(label, "toolResult-")
	if len(label) < mayBeCut {
		return tool, nil
	}
	text, err := s.EntryText(e)
	if err != nil {
		return "", err
	}
	result := s.Message(e, text)
	name, _ := result.Member("toolName").Text()
	if name != "" {
		tool = name
	}
	return tool, nil
}

// callsOf returns the calls of tools in a session, by their results, in file order. Each is the cost of
// one message: its model is the name of the tool. After an error the calls are of no use.
func callsOf(ctx context.Context, s *sessioncore.Snapshot) (calls sessionCosts, err error) {
	for e := range sessioncore.Entry(s.Len()) {
		if !isResult(s, e) {
			continue
		}
		tool, err := toolOf(s, e)
		if err != nil {
			return calls, err
		}
		oneCall := usage{model: tool}
		oneCall.AssistantMessages = 1
		calls.records = append(calls.records, usageRecord{
			entry: e,
			copy:  copyKey(s, e, 0),
			time:  s.Time(e).UnixMilli(),
			usage: oneCall,
		})
	}
	err = s.ConfirmAll(ctx) // an entry that was overwritten meanwhile is no result any more
	return calls, err
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
	defer hold.Close()
	lines := map[lineKey]*Sum{}
	err := c.Rows(ctx, sessions, func(r Row) error {
		addTo(lines, lineKey{
			day:   r.Day,
			cwd:   r.Session.CWD,
			model: r.Model,
			who:   r.Session.Who(),
		}, r.Sum)
		return hold.Resize(int64(len(lines)) * lineSize)
	})
	if err != nil {
		return nil, err
	}
	return linesText(lines), nil
}

// lineSize is the memory of a line of usage.jsonl, with its text, in bytes.
const lineSize = 800

// linesText returns the text of usage.jsonl, in the order that Lines names. It is not nil.
func linesText(lines map[lineKey]*Sum) []byte {
	text := []byte{}
	inOrder := slices.SortedFunc(maps.Keys(lines), func(a, b lineKey) int {
		return cmp.Or(
			a.day.Compare(b.day),
			cmp.Compare(a.cwd, b.cwd),
			cmp.Compare(a.model, b.model),
			cmp.Compare(a.who, b.who),
		)
	})
	for _, key := range inOrder {
		text = rawjson.AppendLine(text, struct { // docs/design.md section 5
			Day   string `json:"day"`
			CWD   string `json:"cwd"`
			Model string `json:"model"`
			Who   string `json:"who,omitempty"` // where there are several people
			*Sum
		}{
			Day:   key.day.Format(time.DateOnly),
			CWD:   names.TextUTF8(key.cwd),
			Model: key.model,
			Who:   key.who,
			Sum:   lines[key],
		})
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

// Rows calls each with all that the lines of usage.jsonl are sums of, in no order. An error of each
// ends it.
func (c *Costs) Rows(ctx context.Context, sessions []*listing.Info, each func(Row) error) error {
	all, callers := c.withSubagents(sessions)
	return c.addUp(ctx, all, callers, each)
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
	// copies has the keys of its entries that copies share, each once, and tokens has as
	// many of each entry.
	copies []uint64
	tokens []uint32
	// covers are the spans with its subagents' costs in it.
	covers []cover
	// dependencies is a hash of all that rows depend on besides the file: the copies that were left out of
	// them, as sessions that began earlier have them, with their tokens, and the covers of its callers.
	dependencies uint64
	rows         []costRow
}

// costRow is the cost of a session on a day with a model.
type costRow struct {
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
	rowSize     = 240
	accountSize = 312
	coverSize   = 24
)

// size returns the memory of an account in bytes, roughly.
func (a account) size() int {
	return accountSize + 8*cap(a.copies) + 4*cap(a.tokens) + rowSize*len(a.rows) + coverSize*cap(a.covers)
}

// addUp calls each with the costs of sessions, but for answers that one before in the list has. So
// the order of sessions decides for which one a copy counts. A subagent in callers counts for its
// caller. The error is one of each or of ctx, or wraps budget.ErrNoMemory for more than maxKeys answers.
func (c *Costs) addUp(
	ctx context.Context, sessions []*listing.Info, callers map[*listing.Info]*listing.Info, each func(Row) error,
) error {
	seen := keySet{}
	covers := covers{}
	isValid := func(info *listing.Info, a account) bool {
		return a.dependencies == dependenciesOf(a.copies, seen, covers.above(info))
	}
	newAccount := func(info *listing.Info, of *sessionCosts) account {
		return c.newAccount(of, seen, covers.above(info))
	}
	return c.each(ctx, sessions, isValid, newAccount, func(info *listing.Info, a account) error {
		session := info
		if caller := callers[info]; caller != nil {
			session = caller
		}
		for i := range a.rows {
			r := &a.rows[i]
			err := each(Row{
				Session: session,
				Day:     r.day,
				Model:   r.model,
				Sum:     &r.sum,
			})
			if err != nil {
				return err
			}
		}
		for i, key := range a.copies {
			seen.add(key, a.tokens[i])
		}
		if len(seen) > maxKeys {
			return fmt.Errorf("%w: there are more than %d answers; add up fewer sessions at once",
				budget.ErrNoMemory, maxKeys)
		}
		covers[info.DirName()] = a.covers
		return nil
	})
}

// oldestFirst sorts sessions by their beginning: a copy is younger than its original, but a fork may
// have its time. Sessions without a time come last.
func oldestFirst(sessions []*listing.Info) []*listing.Info {
	began := func(info *listing.Info) int64 {
		if ms, ok := info.Created(); ok {
			return ms
		}
		return math.MaxInt64
	}
	return slices.SortedFunc(slices.Values(sessions), func(a, b *listing.Info) int {
		byTime := cmp.Compare(began(a), began(b))
		if byTime != 0 {
			return byTime
		}
		isForkA := a.Parent != ""
		isForkB := b.Parent != ""
		switch {
		case isForkA == isForkB:
			return cmp.Compare(a.Name(), b.Name())
		case isForkB:
			return -1
		}
		return 1
	})
}

// keySet has keys of answers with their tokens. A map of integers, which are aligned, takes more
// memory.
type keySet map[[8]byte][4]byte

// add adds a key. Of its copies the one with the most tokens counts.
func (s keySet) add(key uint64, tokens uint32) {
	if known, ok := s.tokens(key); ok {
		tokens = max(tokens, known)
	}
	var text [4]byte
	binary.NativeEndian.PutUint32(text[:], tokens)
	s[bytesOf(key)] = text
}

// tokens returns the tokens of a key, and whether the set has it.
func (s keySet) tokens(key uint64) (tokens uint32, ok bool) {
	text, ok := s[bytesOf(key)]
	return binary.NativeEndian.Uint32(text[:]), ok
}

// bytesOf returns a key as a keySet has it.
func bytesOf(key uint64) (text [8]byte) {
	binary.NativeEndian.PutUint64(text[:], key)
	return text
}

// dependenciesOf returns a hash of the copies that are in seen, with the tokens there, and of the covers of the
// callers. It is a sum, so that their order does not matter.
func dependenciesOf(copies []uint64, seen keySet, above []cover) (sum uint64) {
	for _, key := range copies {
		if tokens, ok := seen.tokens(key); ok {
			sum += maphash.Comparable(seed, [2]uint64{key, uint64(tokens)})
		}
	}
	for _, covered := range above {
		sum += maphash.Comparable(seed, covered)
	}
	return sum
}

// newAccount returns the costs of a session that were not counted yet, neither in seen nor, by above,
// in the sessions that called it. An entry that stands in the file twice counts once. session and
// seen stay as they are.
func (c *Costs) newAccount(session *sessionCosts, seen keySet, above []cover) account {
	a := account{
		copies: make([]uint64, 0, len(session.records)),
		tokens: make([]uint32, 0, len(session.records)),
		covers: session.covers,
	}
	sums := map[rowKey]*Sum{}
	own := make(map[uint64]bool, len(session.records)) // the keys of the records before
	for i := range session.records {
		r := session.records[i]
		if r.copy != 0 { // otherwise no other record is its copy
			if own[r.copy] {
				continue
			}
			own[r.copy] = true
			isNew := a.addCopy(&r, seen)
			if !isNew {
				continue
			}
		}
		at := time.UnixMilli(r.time)
		left, isLeft := r.beyond(above)
		if isLeft && c.counts(at) {
			addTo(sums, rowKey{c.dayOf(at), r.model}, &left)
		}
	}
	a.dependencies = dependenciesOf(a.copies, seen, above)
	a.rows = rowsOf(sums)
	return a
}

// addCopy adds the key of a record to the account. If seen has the answer with fewer tokens, as it was
// copied while it was written, the record keeps only the rest. addCopy returns false if seen has all of it.
func (a *account) addCopy(r *usageRecord, seen keySet) (isNew bool) {
	tokens := uint32(max(0, min(r.TotalTokens, math.MaxUint32)))
	a.copies = append(a.copies, r.copy)
	a.tokens = append(a.tokens, tokens)
	counted, isCopy := seen.tokens(r.copy)
	if !isCopy {
		return true
	}
	if tokens <= counted {
		return false
	}
	r.Sum = r.beyondCopy(amount(counted))
	return true
}

// rowsOf returns sums as rows, in no order.
func rowsOf(sums map[rowKey]*Sum) []costRow {
	rows := make([]costRow, 0, len(sums))
	for key, sum := range sums {
		key.model = unique.Make(key.model).Value() // sessions have the same few models
		rows = append(rows, costRow{key, *sum})
	}
	return rows
}
