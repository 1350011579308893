package codex

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"sort"

	"sessionfs/sessioncore/storage"
)

// chain has the rollouts that a rollout continues, the oldest first: their lines up to that point
// appear between its first line and the rest. Their own first lines are omitted, as a session has
// one header. A chain is immutable.
type chain struct {
	parts    []part
	size     int64    // bytes of all parts
	lines    int64    // lines of all parts
	problems []string // reasons for each part that is missing or short
}

// part is the beginning of a rollout, without its first line.
type part struct {
	name       string        // in Days
	path       string        // of the file, absolute
	object     storage.Token // the file when it was checked
	from, to   int64         // its bytes
	skipped    int64         // lines before from
	lines      int64
	at, lineAt int64 // bytes and lines of the chain before it
}

// joined is a rollout with its chain.
type joined struct {
	storage.Object // the rollout
	first          int64
	*chain
	parents *parents
}

// Join implements agents.Joiner. If the chain cannot be shown, it says why.
func (h *Home) Join(name string, obj storage.Object) storage.Object {
	st, err := obj.Stat()
	if err != nil {
		return obj
	}
	own, err := h.beginningOf(name, st.Token, obj)
	if err != nil || own.base.thread == "" {
		return obj
	}
	h.parents.enter()
	return &joined{Object: obj, first: own.first, chain: h.chainOf(name, own.base), parents: &h.parents}
}

// chainOf follows a rollout back to its beginning. It stats each cached one. A cycle ends it.
func (h *Home) chainOf(name string, base base) *chain {
	c := &chain{}
	visited := map[string]bool{name: true}
	for child := name; base.thread != ""; {
		problem := func(reason string) {
			c.problems = append(c.problems,
				fmt.Sprintf("%s goes on from byte %d of %s, %s", idOf(child), base.size, base.thread, reason))
		}
		at, st, ok := h.find(base.thread)
		if !ok {
			problem("which is not there: it is left out")
			break
		}
		if visited[at] {
			problem("which goes on from this one: the circle is cut here")
			break
		}
		p, next, err := h.partOf(at, st.Token, base.size)
		if err != nil {
			problem("which cannot be read and is left out: " + err.Error())
			break
		}
		if p.to != base.size {
			problem(fmt.Sprintf("which has whole lines up to byte %d: these are shown", p.to))
		}
		if p.lines > 0 {
			c.parts = append(c.parts, p)
		}
		visited[at], base, child = true, next, at
	}
	slices.Reverse(c.parts)
	for i := range c.parts {
		p := &c.parts[i]
		p.at, p.lineAt = c.size, c.lines
		c.size, c.lines = c.size+p.to-p.from, c.lines+p.lines
	}
	return c
}

// partOf returns the beginning of a rollout up to a size, or to the last complete line before that,
// and the rollout's own base.
func (h *Home) partOf(name string, now storage.Token, size int64) (part, base, error) {
	own, err := h.beginningOf(name, now, nil)
	if err != nil {
		return part{}, base{}, err
	}
	file, _ := inHome(name)
	p := part{name: name, path: filepath.Join(h.root, file), object: now, from: own.first, to: min(size, now.Size)}
	if own.first > 0 {
		p.skipped = 1
	}
	if p.to <= p.from {
		return p, own.base, nil
	}
	counted, err := h.count(name, p)
	p.to, p.lines = counted.end, counted.lines
	return p, own.base, err
}

// identity returns a text that differs for chains with different lines.
func (c *chain) identity() string {
	sum := fnv.New128a()
	for i := range c.parts {
		p := &c.parts[i]
		fmt.Fprintln(sum, p.path, p.object.Device, p.object.Inode, p.from, p.to, p.lines)
	}
	for _, problem := range c.problems {
		fmt.Fprintln(sum, problem)
	}
	return string(sum.Sum(nil))
}

// origin returns the file of a line of the chain, from 0, and the line's number there.
func (c *chain) origin(line int64) (path string, at int64) {
	p := &c.parts[sort.Search(len(c.parts), func(i int) bool { return c.parts[i].lineAt > line })-1]
	return p.path, line - p.lineAt + p.skipped + 1
}

// ReadAt implements storage.Object.
func (j *joined) ReadAt(p []byte, off int64) (n int, err error) {
	if off < j.first {
		n, err = j.Object.ReadAt(p[:min(int64(len(p)), j.first-off)], off)
		if n == len(p) || off+int64(n) < j.first {
			return n, err
		}
	}
	for off += int64(n) - j.first; n < len(p) && off < j.size; {
		i := sort.Search(len(j.parts), func(i int) bool { return j.parts[i].at > off }) - 1
		part := &j.parts[i]
		at := part.from + off - part.at
		want := p[n:]
		if int64(len(want)) > part.to-at {
			want = want[:part.to-at]
		}
		if err := j.parents.readFull(part, want, at); err != nil {
			return n, err
		}
		n, off = n+len(want), off+int64(len(want))
	}
	if n == len(p) {
		return n, nil
	}
	more, err := j.Object.ReadAt(p[n:], off-j.size+j.first)
	return n + more, err
}

// Stat implements storage.Object. The size includes the chain.
func (j *joined) Stat() (storage.Stat, error) {
	st, err := j.Object.Stat()
	st.Size += j.size
	return st, err
}

// Joined returns the size of the chain.
func (j *joined) Joined() int64 { return j.size }

// Close implements storage.Object.
func (j *joined) Close() error {
	if err := j.Object.Close(); err != nil {
		return err
	}
	j.parents.leave()
	return nil
}
