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
// rows of messages tell the charges: parts, which are nearly all of a database, are not read.
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

// Open implements storage.Files. It reads no state of a file for a session of a database, as a bill opens all of them.
func (b *bill) Open(name string) (storage.Object, error) {
	known := b.lastKnown(name)
	if known != nil {
		return &billedObject{object: known, bill: b}, nil
	}
	opened, err := b.objectOf(name)
	if err != nil {
		return nil, err
	}
	return &billedObject{object: opened, bill: b}, nil
}

// lastKnown returns the object of a session in the last list, nil if that does not have it, or not of a database.
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
	byDatabase := map[*sqlite.Database][]*session{}
	for _, name := range names {
		obj := b.lastKnown(name)
		if obj != nil {
			s := obj.session
			byDatabase[s.database] = append(byDatabase[s.database], s)
		}
	}
	ahead := map[string]*rowBill{}
	for database, sessions := range byDatabase {
		bills, err := b.readBills(context.Background(), database, sessions)
		if err != nil {
			continue
		}
		for _, read := range bills {
			ahead[read.session.id] = read
		}
	}
	b.mu.Lock()
	b.ahead = ahead
	b.mu.Unlock()
}

// maxAhead bounds the messages that ReadAhead keeps, of some 200 bytes each.
const maxAhead = 1 << 15

// readBills reads the charges of sessions of a database in one transaction: of the first session, and of the ones behind it
// until more than maxAhead messages are read.
func (b *bill) readBills(ctx context.Context, database *sqlite.Database, sessions []*session) (bills []*rowBill, err error) {
	err = database.Read(ctx, func(conn *sqlite.Conn) error {
		bills = nil
		kept := 0
		memory := &rowMemory{}
		for _, s := range sessions {
			if kept > maxAhead {
				break
			}
			read := &rowBill{session: s, provider: b.name, memory: memory}
			err := read.read(conn)
			if err != nil {
				return err
			}
			kept += len(read.messages)
			bills = append(bills, read)
		}
		return nil
	})
	return bills, err
}

// billOf returns the charges of a session. Those that were read ahead are used once, and only for the session of the list in
// which they were read.
func (b *bill) billOf(ctx context.Context, s *session) (*rowBill, error) {
	b.mu.Lock()
	ahead := b.ahead[s.id]
	delete(b.ahead, s.id)
	b.mu.Unlock()
	if ahead != nil && ahead.session == s {
		return ahead, nil
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
	read, err := o.bill.billOf(ctx, o.session)
	if err != nil || read.isPartial {
		return false, err
	}
	read.charge(to)
	return true, nil
}
