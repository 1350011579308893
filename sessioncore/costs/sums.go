package costs

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unique"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/report"
)

type sum = report.Sum

// rowKey is a day and a model.
type rowKey struct {
	day   int64 // days since the epoch, in UTC
	model string
}

// lineKey is what a line of usage.jsonl is about.
type lineKey struct {
	day             int64
	cwd, model, who string
}

// line is a line of usage.jsonl (docs/design.md section 5).
type line struct {
	Day   string `json:"day"`
	CWD   string `json:"cwd"`
	Model string `json:"model"`
	Who   string `json:"who,omitempty"` // where there are several people
	sum
}

// taken is a set of copies, as far as two sets must be told apart.
type taken struct {
	count int
	total uint64 // of their keys
}

// sums tells what was counted.
type sums struct {
	seen keySet // the copies that were counted
}

// takenBefore returns which of the copies were counted in other sessions.
func (s *sums) takenBefore(copies []uint64) (t taken) {
	for _, key := range copies {
		if s.seen.has(key) {
			t.add(key)
		}
	}
	return t
}

func (t *taken) add(key uint64) {
	t.count++
	t.total += key
}

// account returns the costs of a session that were not counted yet, in itself or, by above, in the
// sessions that called it. An entry that stands in the file twice counts once.
func (s *sums) account(r reading, above []report.Cover) *account {
	a := &account{State: r.State, covers: slices.Clip(r.costs.Covers), above: keyOf(above)}
	rows := map[rowKey]*sum{}
	own := make(map[uint64]struct{}, len(r.costs.Entries))
	for i := range r.costs.Entries {
		c := &r.costs.Entries[i]
		if c.Copy != 0 {
			if _, ok := own[c.Copy]; ok {
				continue
			}
			own[c.Copy] = struct{}{}
			a.copies = append(a.copies, c.Copy)
			if s.seen.has(c.Copy) {
				a.left.add(c.Copy)
				continue
			}
		}
		if left, ok := c.Covered(above); ok {
			report.AddTo(rows, rowKey{day: dayOf(c.Time), model: c.Model}, &left)
		}
	}
	a.copies = slices.Clip(a.copies)
	for key, of := range rows {
		key.model = unique.Make(key.model).Value() // sessions have the same few models
		a.rows = append(a.rows, row{key, *of})
	}
	return a
}

const dayLength = int64(24 * time.Hour / time.Millisecond)

// dayOf returns the day of a time, which is in ms since the epoch.
func dayOf(ms int64) int64 {
	day := ms / dayLength
	if ms%dayLength < 0 {
		day--
	}
	return day
}

// add calls each with the rows of a session.
func (s *sums) add(info *listing.Info, a *account, each func(*listing.Info, *row) error) error {
	for i := range a.rows {
		if err := each(info, &a.rows[i]); err != nil {
			return err
		}
	}
	return s.seen.add(a.copies)
}

// lineSize is the memory of an element of lines, with its text, in bytes.
const lineSize = 800

// lines are those of usage.jsonl.
type lines map[lineKey]*sum

// text returns usage.jsonl.
func (l lines) text() []byte {
	text := []byte{}
	for _, key := range slices.SortedFunc(maps.Keys(l), lineKey.compare) {
		text = rawjson.AppendLine(text, line{
			Day: time.UnixMilli(key.day * dayLength).UTC().Format(time.DateOnly), CWD: names.TextUTF8(key.cwd), Model: key.model, Who: key.who,
			sum: *l[key],
		})
	}
	return text
}

func (k lineKey) compare(other lineKey) int {
	return cmp.Or(cmp.Compare(k.day, other.day), cmp.Compare(k.cwd, other.cwd), cmp.Compare(k.model, other.model), cmp.Compare(k.who, other.who))
}
