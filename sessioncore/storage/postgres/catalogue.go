package postgres

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	"sessionfs/sessioncore/storage"
)

// catalogueNode is a name in the catalogue: a file if it has a row, otherwise a directory. A directory
// exists as long as a row is below it.
type catalogueNode struct {
	parent   *catalogueNode
	name     string // in parent
	row      *row
	children map[string]*catalogueNode
	inode    uint64
	modified int64 // of a directory, nanoseconds since the epoch
	changed  int64
}

// rowFacts are the columns of a row, without its content.
type rowFacts struct {
	path    string
	version string // xmin
	size    int64  // bytes
	mtime   int64  // milliseconds since the epoch
	title   title
}

// targets are where the columns of a row are scanned to.
func (f *rowFacts) targets() []any {
	return []any{&f.path, &f.version, &f.size, &f.mtime, &f.title.text, &f.title.source, &f.title.updated}
}

// row is one object: a row of the table until it is written anew. Appends and titles leave it the
// same object. Its content is kept in content.go.
type row struct {
	rowFacts
	inode   uint64
	changed int64
	stored  int64 // Storage.clock when facts were stored
	gone    bool  // it is not in the table any more: only the kept content can be read

	content rowContent
}

// changeAge is the least age that the last change of a file is given. The version tells states
// apart, so readers need not wait for a tick of the clock (storage.Token.Settling).
const changeAge = 2 * time.Second

// nextChange returns Token.Changed after a change: later than before.
func nextChange(before, modified int64) int64 {
	return max(before+1, min(modified, time.Now().Add(-changeAge).UnixNano()))
}

// modified returns the modification time in nanoseconds since the epoch.
func (r *row) modified() int64 { return r.mtime * int64(time.Millisecond) }

// newRow returns a row that is new to the catalogue. Callers must hold s.mu.
func (s *Storage) newRow(f rowFacts) *row {
	s.inodes++
	r := &row{rowFacts: f, inode: s.inodes}
	r.changed = nextChange(0, r.modified())
	r.content.row = r
	r.content.s = s
	s.stamp(r)
	return r
}

// name returns the name of a row, which may be unusable. Rows do not keep it, as there are many.
// Callers must hold s.mu.
func (r *row) name() string {
	s := r.content.s
	if s.people != nil {
		return s.people.name(r.path, true)
	}
	return strings.TrimPrefix(r.path, s.prefix)
}

// find returns the node of a name, nil if there is none. Callers must hold s.mu.
func (s *Storage) find(name string) *catalogueNode {
	n := s.root
	if name == "" {
		return n
	}
	for part := range strings.SplitSeq(name, "/") {
		if n.row != nil { // a file: rows below it are not shown
			return nil
		}
		n = n.children[part]
		if n == nil {
			return nil
		}
	}
	return n
}

// enter returns the node of the name of the row with a path, and makes it and its directories if they are
// missing. Callers must hold s.mu.
func (s *Storage) enter(name, path string) *catalogueNode {
	n := s.root
	dir := storage.Dir(name)
	if dir != "" {
		for part := range strings.SplitSeq(dir, "/") {
			n = s.enterIn(n, part)
		}
	}
	base := path[strings.LastIndexByte(path, '/')+1:] // also the name's: the row keeps it in memory anyway
	return s.enterIn(n, base)
}

// enterIn returns the child of a directory, which it makes if there is none. Callers must hold s.mu.
func (s *Storage) enterIn(n *catalogueNode, name string) *catalogueNode {
	child := n.children[name]
	if child == nil {
		s.inodes++
		child = &catalogueNode{parent: n, name: name, inode: s.inodes}
		if n.children == nil {
			n.children = map[string]*catalogueNode{}
		}
		n.children[name] = child
		n.touch(time.Now().UnixNano())
		child.touch(n.modified)
	}
	return child
}

// touch gives a directory a new token, with a modification at a time in nanoseconds since the epoch or later.
// Callers must hold Storage.mu.
func (n *catalogueNode) touch(at int64) {
	n.modified = max(n.modified, at)
	n.changed = nextChange(n.changed, n.modified)
}

// prune removes a node and the directories above it that became empty. Callers must hold s.mu.
func (s *Storage) prune(n *catalogueNode) {
	for n.parent != nil && n.row == nil && len(n.children) == 0 {
		delete(n.parent.children, n.name)
		n.parent.touch(time.Now().UnixNano())
		n = n.parent
	}
}

// put stores a row's facts, read at time asked of the clock or later. A known row stays the same
// object unless it is certainly another one. It returns false, and stores nothing, if other facts
// were stored since: the newer of the two is not known then. Callers must hold s.mu.
func (s *Storage) put(f rowFacts, asked int64) bool {
	r := s.rows[f.path]
	if r == nil {
		s.add(s.newRow(f))
		return true
	}
	if r.version == f.version {
		s.stamp(r)
		return true
	}
	if r.stored > asked {
		return false
	}
	mayHaveGrown := f.size >= r.size && f.size >= r.content.length.Load()
	if !mayHaveGrown {
		s.replace(r, f)
		return true
	}
	r.rowFacts = f
	r.changed = nextChange(r.changed, r.modified())
	s.stamp(r)
	return true
}

// stamp records that facts of a row were stored now. Callers must hold s.mu.
func (s *Storage) stamp(r *row) {
	s.clock++
	r.stored = s.clock
}

// now returns the clock, for put.
func (s *Storage) now() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.clock
}

// add adds a row. A row with a path that is no usable name is not shown; the first one is logged. Callers
// must hold s.mu.
func (s *Storage) add(r *row) {
	s.rows[r.path] = r
	name := r.name()
	if storage.CheckName(name) != nil {
		if !s.badPathLogged {
			s.badPathLogged = true
			const message = "a row is not shown: its path has no usable name below prefix, or names no owner"
			s.opts.Log.Warn(message, "path", r.path, "prefix", s.prefix)
		}
		return
	}
	n := s.enter(name, r.path)
	n.row = r
	dir := n.parent
	modified := r.modified()
	isPast := modified < time.Now().UnixNano()
	if isPast && modified > dir.modified {
		dir.modified = modified
	}
	dir.touch(dir.modified)
}

// replace makes the name of a row stand for another object, a new row with facts f, which it returns. The old
// row is gone. Callers must hold s.mu.
func (s *Storage) replace(old *row, f rowFacts) *row {
	old.gone = true
	r := s.newRow(f)
	r.changed = nextChange(old.changed, r.modified())
	s.rows[f.path] = r
	n := s.find(r.name())
	if n != nil && n.row == old {
		n.row = r
	}
	return r
}

// remove removes a row that is not in the table any more. Callers must hold s.mu.
func (s *Storage) remove(path string) {
	r := s.rows[path]
	if r == nil {
		return
	}
	delete(s.rows, path)
	r.gone = true
	n := s.find(r.name())
	if n != nil && n.row == r {
		n.row = nil
		n.parent.touch(time.Now().UnixNano())
		s.prune(n)
	}
}

// rowStat returns the state of a row. Callers must hold s.mu.
func (s *Storage) rowStat(r *row) storage.Stat {
	st := s.owner
	st.Kind = storage.KindFile
	st.Mode = storage.FileMode
	st.Token = storage.Token{
		Device:   s.device,
		Inode:    r.inode,
		Size:     r.size,
		Modified: r.modified(),
		Changed:  r.changed,
	}
	return st
}

// statOf returns the state of a node. Callers must hold s.mu.
func (s *Storage) statOf(n *catalogueNode) storage.Stat {
	if n.row != nil {
		return s.rowStat(n.row)
	}
	st := s.owner
	st.Kind = storage.KindDir
	st.Mode = storage.DirMode
	st.Token = storage.Token{
		Device:   s.device,
		Inode:    n.inode,
		Modified: n.modified,
		Changed:  n.changed,
	}
	return st
}

// missing returns the error for a name that is not there.
func missing(op, name string) error {
	return &fs.PathError{
		Op:   op,
		Path: name,
		Err:  fs.ErrNotExist,
	}
}

// lookUp returns the node of a name; "" is the root. Callers must hold s.mu.
func (s *Storage) lookUp(op, name string) (*catalogueNode, error) {
	if name != "" {
		err := storage.CheckName(name)
		if err != nil {
			return nil, err
		}
	}
	n := s.find(name)
	if n != nil {
		return n, nil
	}
	return nil, missing(op, name)
}

// file returns the row of a name. The error wraps fs.ErrNotExist, storage.ErrBadName, or
// storage.ErrNotRegular for a directory. Callers must hold s.mu.
func (s *Storage) file(op, name string) (*row, error) {
	n, err := s.lookUp(op, name)
	switch {
	case err != nil:
		return nil, err
	case n == s.root:
		return nil, fmt.Errorf("%w: the root", storage.ErrBadName)
	case n.row == nil:
		return nil, fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	return n.row, nil
}

// checkParent returns an error unless the directory of a name is there. Callers must hold s.mu.
func (s *Storage) checkParent(op, name string) error {
	err := storage.CheckName(name)
	if err != nil {
		return err
	}
	n := s.find(storage.Dir(name))
	if n == nil || n.row != nil {
		return missing(op, name)
	}
	return nil
}
