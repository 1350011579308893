package opencode

import (
	"context"
	"sync"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/sqlite"
)

// Bill implements agents.Billed.
func (h *home) Bill() storage.Files { return &bill{home: h} }

// bill shows the sessions to a reader that needs the charges of their answers, and no size before it reads. The
// rows of messages tell them: parts, which are nearly all of a database, are left.
type bill struct {
	*home

	mu    sync.Mutex          // guards ahead
	ahead map[string]*rowBill // by session, of the last ReadAhead
}

// Stat implements storage.Files. It makes no text.
func (b *bill) Stat(name string) (storage.Stat, error) {
	l, err := b.sessions()
	if err != nil {
		return storage.Stat{}, err
	}
	return b.stat(l, name)
}

// Open implements storage.Files. It looks at no file for a session of a database, as a bill opens all of them.
func (b *bill) Open(name string) (storage.Object, error) {
	obj := b.lastKnown(name)
	if obj == nil {
		opened, err := b.objectOf(name)
		if err != nil {
			return nil, err
		}
		obj = opened
	}
	return &billedObject{object: obj, bill: b}, nil
}

// lastKnown returns the object of a session in the last list, nil if it is of no database.
func (b *bill) lastKnown(name string) *object {
	b.home.mu.Lock()
	l := b.last.Value
	b.home.mu.Unlock()
	if l == nil {
		return nil
	}
	s := l.find(name)
	if s == nil || s.database == nil {
		return nil
	}
	return &object{home: b.home, name: name, list: l, session: s}
}

// ReadAhead implements storage.Files. It reads the charges of sessions in one transaction for each database. An
// error recurs when the session is read.
func (b *bill) ReadAhead(names []string) {
	of := map[*sqlite.Database][]*session{}
	for _, name := range names {
		obj := b.lastKnown(name)
		if obj != nil {
			s := obj.session
			of[s.database] = append(of[s.database], s)
		}
	}
	ahead := map[string]*rowBill{}
	for database, sessions := range of {
		bills, err := b.readBills(context.Background(), database, sessions)
		if err != nil {
			continue
		}
		for i, s := range sessions[:len(bills)] {
			ahead[s.id] = bills[i]
		}
	}
	b.mu.Lock()
	b.ahead = ahead
	b.mu.Unlock()
}

// maxAhead bounds the messages that ReadAhead keeps.
const maxAhead = 1 << 15

// readBills reads the charges of sessions of a database, of the first one and of others as far as few messages are kept.
func (b *bill) readBills(ctx context.Context, database *sqlite.Database, sessions []*session) (bills []*rowBill, err error) {
	err = database.Read(ctx, func(conn *sqlite.Conn) error {
		bills = nil
		kept := 0
		memory := &rowMemory{}
		for _, s := range sessions {
			if kept > maxAhead {
				break
			}
			of := &rowBill{session: s, provider: b.name, memory: memory}
			err := of.read(conn)
			if err != nil {
				return err
			}
			kept += len(of.messages)
			bills = append(bills, of)
		}
		return nil
	})
	return bills, err
}

// billOf returns the charges of a session, and forgets them.
func (b *bill) billOf(ctx context.Context, s *session) (*rowBill, error) {
	b.mu.Lock()
	of := b.ahead[s.id]
	delete(b.ahead, s.id)
	b.mu.Unlock()
	if of != nil && of.session == s {
		return of, nil
	}
	bills, err := b.readBills(ctx, s.database, []*session{s})
	if err != nil {
		return nil, err
	}
	return bills[0], nil
}

// billedObject is an open session of a bill.
type billedObject struct {
	*object
	bill *bill
}

var _ agents.Charging = (*billedObject)(nil)

// Charge implements agents.Charging. A session in whose messages an answer has no tokens, or has facts that no
// client writes, is told by its text alone.
func (o *billedObject) Charge(ctx context.Context, to agents.Ledger) (isWhole bool, err error) {
	if o.session.database == nil {
		return false, nil
	}
	of, err := o.bill.billOf(ctx, o.session)
	if err != nil || of.isPartial {
		return false, err
	}
	of.charge(to)
	return true, nil
}
