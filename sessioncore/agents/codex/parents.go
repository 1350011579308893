package codex

import (
	"fmt"
	"slices"
	"sync"

	"sessionfs/sessioncore/storage"
)

// maxParents bounds how many rollouts are open because others go on from them.
const maxParents = 32

// parents opens the rollouts from which others go on. A chain may have thousands, so each is open
// while it is read, and a few a while longer, since a reader mostly reads on. None is open when no
// rollout is that goes on from another one.
type parents struct {
	files storage.Files

	mu     sync.Mutex // guards the fields below
	free   sync.Cond  // a file is read by nobody any more
	idle   []parent   // files that nobody reads, the least recently used first
	open   int        // all files
	joined int        // rollouts that are open and go on from others
}

// parent is an open rollout.
type parent struct {
	storage.Object
	name   string
	opened storage.Token
}

func (p *parents) init(files storage.Files) {
	p.files, p.free.L = files, &p.mu
}

// enter counts an open rollout that goes on from others.
func (p *parents) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joined++
}

// leave takes back enter. The last one closes the files that nobody reads.
func (p *parents) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.joined--; p.joined == 0 {
		p.evict(len(p.idle))
	}
}

// evict closes files that nobody reads. Callers must hold p.mu.
func (p *parents) evict(n int) {
	for _, f := range p.idle[:n] {
		_ = f.Close()
	}
	p.idle, p.open = slices.Delete(p.idle, 0, n), p.open-n
}

// readFull reads a part of a rollout. The error wraps storage.ErrStale if the file is another one
// now, or ends before that.
func (p *parents) readFull(from *part, text []byte, off int64) error {
	f, err := p.borrow(from)
	if err != nil {
		return err
	}
	defer p.giveBack(f)
	return storage.ReadFull(f, text, off)
}

// borrow opens a rollout, or takes it from those that are open. It waits while too many are read.
func (p *parents) borrow(from *part) (parent, error) {
	p.mu.Lock()
	i := slices.IndexFunc(p.idle, func(f parent) bool { return f.name == from.name && f.opened.SameObject(from.object) })
	if i >= 0 {
		f := p.idle[i]
		p.idle = slices.Delete(p.idle, i, i+1)
		p.mu.Unlock()
		return f, nil
	}
	for p.open >= maxParents && len(p.idle) == 0 {
		p.free.Wait()
	}
	if p.open >= maxParents {
		p.evict(1)
	}
	p.open++
	p.mu.Unlock()
	f := parent{name: from.name, opened: from.object}
	obj, err := p.files.Open(from.name)
	if err == nil {
		var st storage.Stat
		f.Object = obj
		if st, err = obj.Stat(); err == nil && st.SameObject(from.object) {
			return f, nil
		}
		if err == nil {
			err = fmt.Errorf("%w: %s was replaced", storage.ErrStale, from.name)
		}
		_ = obj.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.free.Signal()
	return parent{}, err
}

// giveBack keeps a file for the next reader, while there may be one.
func (p *parents) giveBack(f parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle = append(p.idle, f); p.joined == 0 {
		p.evict(len(p.idle))
	}
	p.free.Signal()
}
