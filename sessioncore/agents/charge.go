package agents

import (
	"context"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Charge has the cost of an answer: the facts of its entry that a bill needs.
type Charge struct {
	ID       string // of the answer's entry
	At       int64  // its time, in ms since the epoch
	Provider string
	Model    rawjson.Value // a JSON string
	Usage    Usage
	Calls    []byte // JSON objects of calls of other models, with commas between them
	Cost     []byte // the member with a recorded cost, or empty
}

// Ledger takes the charges of a session.
type Ledger interface {
	// Begin is called before the first charge. It is called again if the session must be reread.
	Begin()
	// Charge is called for each answer, in the order of the entries. of is valid until it returns.
	Charge(of *Charge)
}

// Charging is an open session of another agent that a bill can be made of without its text.
type Charging interface {
	// Charge gives a ledger the charges of the session. It returns false if only its text tells them.
	Charge(ctx context.Context, to Ledger) (isWhole bool, err error)
}

// billing is the state of a Builder that makes charges, and no text.
type billing struct {
	to        Ledger
	isPartial bool // an entry that is no answer has a usage, or the time of an answer depends on other entries
}

// Bills reports whether nothing but charges is made of the records.
func (b *Builder) Bills() bool { return b.billing != nil }

// Skips reports whether lines are left out that have no charge.
func (b *Builder) Skips() bool { return b.Bills() && b.Chargeless != nil }

// charge adds the answer to the ledger.
func (a *Answer) charge() {
	b := a.builder
	at, _, isTimed := rawjson.ReadTimestamp(a.Time)
	if !isTimed { // then readers of the text take the time of another entry
		b.billing.isPartial = true
	}
	c := Charge{
		ID:       a.ID,
		At:       at,
		Provider: b.provider.Name,
		Model:    a.model,
		Usage:    a.usage,
		Calls:    a.calls,
		Cost:     a.cost,
	}
	if len(a.model) == 0 {
		c.Model = Quoted(b.provider.Model)
	}
	if a.isCounted() {
		ended := laterDay(a.Time, a.ended)
		c.Usage.Ended = max(a.usage.Ended, ended)
	}
	b.billing.to.Charge(&c)
}

// Charge implements Charging. A long session that is billed again grows: then it is converted, so that each
// growth is read alone.
func (o *object) Charge(ctx context.Context, to Ledger) (isWhole bool, err error) {
	if o.files.facts == nil { // these sessions are read for their texts
		return false, nil
	}
	raw := o.Raw()
	own, isOwn := raw.(Charging) // of rows
	if isOwn {
		isWhole, err = own.Charge(ctx, to)
		if err != nil || isWhole {
			return isWhole, err
		}
	}
	st, err := raw.Stat()
	if err != nil {
		return false, err
	}
	if st.Size > longSize {
		wasBilled := o.files.noteBilled(o.name)
		if wasBilled {
			return false, nil
		}
		done, err := o.files.awaitTurn(ctx)
		if err != nil {
			return false, err
		}
		defer done()
	}
	about, err := o.files.about(o.name, raw, st.Size)
	if err != nil {
		return false, err
	}
	converter := o.files.format.Converter(about, raw)
	return chargeAll(ctx, converter, raw, st.Size, to)
}

// chargeAll gives a ledger the charges of a file of size bytes. It rereads it as often as a conversion does,
// and once more for the lines that were left out. It returns false if only the text tells all charges.
func chargeAll(
	ctx context.Context, b *Builder, raw storage.Object, size int64, to Ledger,
) (isWhole bool, err error) {
	for range maxReadings + 1 {
		b.billing = &billing{to: to}
		to.Begin()
		c := &conversion{about: b.About, converter: b}
		_, err := c.convertOnce(ctx, raw, size, nil)
		if err != nil || b.billing.isPartial {
			return false, err
		}
		b = b.Restart()
		if b == nil {
			break
		}
	}
	return true, nil
}

// noteBilled notes that the charges of a long session are read, and reports whether they were before.
func (f *Files) noteBilled(name string) (wasBilled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wasBilled = f.billed[name]
	f.billed[name] = true
	return wasBilled
}

// awaitTurn waits until a long file may be read, and returns a function that the caller must call at the end of reading.
// The error comes from ctx.
func (f *Files) awaitTurn(ctx context.Context) (done func(), err error) {
	select {
	case f.turns <- struct{}{}:
		return func() { <-f.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
