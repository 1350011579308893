package opencode

import (
	"io/fs"
	"sync"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// object is an open session. Its text is made at its first use and stays as it was then.
type object struct {
	home    *home
	name    string
	list    *list    // when it was opened
	session *session // in the list

	mu       sync.Mutex // guards the fields below
	text     *budget.Text
	stat     storage.Stat // of text
	isClosed bool
}

var (
	_ agents.Brief         = (*object)(nil)
	_ storage.TabledObject = (*object)(nil)
)

// FirstRecord implements agents.Brief. It needs no text.
func (o *object) FirstRecord() []byte { return o.session.appendFacts(nil) }

// About implements agents.Brief.
func (o *object) About() agents.About { return o.home.aboutIn(o.list, o.name, o.session) }

// State implements agents.Brief.
func (o *object) State() storage.Stat { return o.home.stateOf(o.session) }

// Table implements storage.TabledObject.
func (o *object) Table() storage.Table {
	if !o.session.tells() {
		return nil
	}
	return rowTable{o.session.database}
}

// made returns the text and its state. At the first use it makes the text, of the session as it is then. The object keeps it:
// callers must not close it.
func (o *object) made() (*budget.Text, storage.Stat, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isClosed {
		return nil, storage.Stat{}, fs.ErrClosed
	}
	if o.text != nil {
		return o.text, o.stat, nil
	}
	s, text, err := o.home.textOf(o.name, o.session)
	if err != nil {
		return nil, storage.Stat{}, err
	}
	o.text = text
	o.stat = o.home.stateOf(s)
	o.stat.Size = text.Size() // another version may be measured meanwhile
	return o.text, o.stat, nil
}

// Stat implements storage.Object. It makes the text, for its size.
func (o *object) Stat() (storage.Stat, error) {
	_, st, err := o.made()
	return st, err
}

// ReadAt implements storage.Object.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	text, _, err := o.made()
	if err != nil {
		return 0, err
	}
	return text.ReadAt(p, off)
}

// Close implements storage.Object.
func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isClosed = true
	if o.text != nil {
		o.text.Close()
		o.text = nil
	}
	return nil
}
