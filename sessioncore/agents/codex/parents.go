package codex

import (
	"fmt"
	"slices"
	"sync"

	"sessionfs/sessioncore/storage"
)

// maxParents bounds the open rollouts that others continue.
const maxParents = 32

// parents opens the rollouts that others continue. A chain may have thousands, so each is open
// while it is read, and a few remain open for sequential reads. All are closed with the last joined
// rollout.
type parents struct {
	files storage.Files

	mu     sync.Mutex // guards the fields below
	free   sync.Cond  // a file became idle
	idle   []parent   // unused files, the least recently used first
	open   int        // all files
	joined int        // number of open joined rollouts
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

// enter counts an open joined rollout.
func (p *parents) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joined++
}

// leave undoes enter. The last one closes the idle files.
func (p *parents) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.joined--; p.joined == 0 {
		p.evict(len(p.idle))
	}
}

// evict closes n idle files. Callers must hold p.mu.
func (p *parents) evict(n int) {
	for _, f := range p.idle[:n] {
		_ = f.Close()
	}
	p.idle, p.open = slices.Delete(p.idle, 0, n), p.open-n
}

// readFull reads a part of a rollout. The error wraps storage.ErrStale if the file was replaced or
// is shorter.
func (p *parents) readFull(from *part, text []byte, off int64) error {
	f, err := p.borrow(from)
	if err != nil {
		return err
	}
	defer p.unborrow(f)
	return storage.ReadFull(f, text, off)
}

// borrow returns an open rollout. It waits while too many are in use.
func (p *parents) borrow(from *part) (parent, error) {
	p.mu.Lock()
	i := slices.IndexFunc(p.idle, func(f parent) bool {
		return f.name == from.name && f.opened.SameObject(from.object)
	})
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

// unborrow keeps a file for the next reader, if a joined rollout is open.
func (p *parents) unborrow(f parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle = append(p.idle, f); p.joined == 0 {
		p.evict(len(p.idle))
	}
	p.free.Signal()
}
