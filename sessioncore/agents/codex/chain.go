package codex

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// chain has the rollouts that a rollout continues, the oldest first: their lines up to that point
// appear between its first line and the rest. Their own first lines are omitted, as a session has
// one header. A chain is immutable.
type chain struct {
	parts    []rolloutPart // the last one is the rest, without bytes; none if there is nothing to show
	size     int64         // bytes of all parts and marks
	problems []string      // reasons for each part that is missing or short
	isCircle bool          // a rollout in it goes on from the session
}

// rolloutPart is the beginning of a rollout, without its first line, and the mark before it.
type rolloutPart struct {
	mark     string
	name     string        // in Days
	path     string        // of the file, absolute
	object   storage.Token // the file when it was found
	from, to int64         // its bytes
	at       int64         // bytes of the chain before its mark
}

// A mark is the line before a part. It ends a line that the part before it cuts.
const (
	markPrefix = `{"rollout":`
	markLines  = 2 // of the text of a mark
)

// rolloutHead has facts of a rollout's first line.
type rolloutHead struct {
	size int64 // of the line
	base base
}

// base is the place in another rollout that a rollout continues.
type base struct {
	thread string // "" if it continues none
	size   int64  // bytes of that thread's rollout
}

// maxFirst bounds the first line of a rollout, which has some 20 KB of instructions.
const maxFirst = 8 << 20

// beginningOf returns the facts in the first line of a rollout in the state st. obj is the file, nil
// for one that is not open.
func (h *Home) beginningOf(name string, st storage.Stat, obj storage.Object) (rolloutHead, error) {
	return h.beginnings.Of(name, st, func() (b rolloutHead, err error) {
		if obj == nil {
			obj, err = h.Open(name)
			if err != nil {
				return b, err
			}
			defer obj.Close()
		}
		begin := io.NewSectionReader(obj, 0, maxFirst)
		lines := bufio.NewReaderSize(begin, agents.HeadSize)
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			err = errors.New("it has no whole first line")
		}
		b.size = int64(len(line))
		b.base = baseIn(bytes.TrimSpace(line))
		return b, err
	})
}

// baseIn returns the place that a rollout with this first line continues.
func baseIn(line rawjson.Value) (b base) {
	hasBase := bytes.Contains(line, []byte(`"history_base"`))
	isMeta := hasBase && rawjson.IsValidObject(line) && line.Member("type").Is("session_meta")
	if !isMeta {
		return b
	}
	payload := line.Member("payload")
	from := payload.Member("history_base")
	b.size = agents.Count(from.Member("end_byte_offset"))
	if b.size > 0 {
		b.thread, _ = from.Member("thread_id").Text()
	}
	return b
}

// chainOf follows a rollout back to its beginning. A cycle ends it.
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
			c.isCircle = true
			break
		}
		first, err := h.beginningOf(at, st, nil)
		if err != nil {
			problem("which cannot be read and is left out: " + err.Error())
			break
		}
		if st.Size < base.size {
			problem(fmt.Sprintf("which has whole lines up to byte %d: these are shown", st.Size))
		}
		if to := min(base.size, st.Size); to > first.size {
			file, _, _ := inHome(at)
			p := rolloutPart{name: at, path: filepath.Join(h.root, file), object: st.Token, from: first.size, to: to}
			c.parts = append(c.parts, p)
		}
		visited[at] = true
		base = first.base
		child = at
	}
	if len(c.parts) == 0 {
		return c
	}
	slices.Reverse(c.parts)
	c.parts = append(c.parts, rolloutPart{})
	for i := range c.parts {
		p := &c.parts[i]
		p.at = c.size
		p.mark = fmt.Sprintf("\n%s%d}\n", markPrefix, i+1)
		c.size += int64(len(p.mark)) + p.to - p.from
	}
	return c
}

// identity returns a text that differs for chains with different lines.
func (c *chain) identity() string {
	sum := fnv.New128a()
	for _, p := range c.parts {
		fmt.Fprintln(sum, p.path, p.object.Device, p.object.Inode, p.from, p.to)
	}
	fmt.Fprintln(sum, c.problems)
	return string(sum.Sum(nil))
}

// joined is a rollout with its chain.
type joined struct {
	storage.Object // the rollout
	first          int64
	*chain
	files storage.Files

	mu   sync.Mutex     // guards the fields below
	open storage.Object // the file of a part that is read, or nil
	at   *rolloutPart
}

// Join implements agents.Joiner. If the chain cannot be shown, it says why.
func (h *Home) Join(name string, obj storage.Object) storage.Object {
	st, err := obj.Stat()
	if err != nil {
		return obj
	}
	own, err := h.beginningOf(name, st, obj)
	if err != nil || own.base.thread == "" {
		return obj
	}
	return &joined{
		Object: obj,
		first:  own.size,
		chain:  h.chainOf(name, own.base),
		files:  h,
	}
}

// ReadAt implements storage.Object.
func (j *joined) ReadAt(text []byte, off int64) (n int, err error) {
	for n < len(text) {
		more, err := j.readSome(text[n:], off+int64(n))
		n += more
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readSome reads up to the end of a part or of its mark. The text is, with the bytes of the rollout in [ ]:
//
//	[first line] mark part mark part … [rest]
//	             ^ j.first              ^ j.first + j.size
func (j *joined) readSome(text []byte, off int64) (n int, err error) {
	inChain := off - j.first
	switch {
	case inChain < 0:
		length := min(int64(len(text)), -inChain)
		return j.Object.ReadAt(text[:length], off)
	case inChain >= j.size:
		return j.Object.ReadAt(text, off-j.size)
	}
	next := sort.Search(len(j.parts), func(i int) bool {
		return j.parts[i].at > inChain
	})
	part := &j.parts[next-1]
	inPart := inChain - part.at
	markSize := int64(len(part.mark))
	if inPart < markSize {
		return copy(text, part.mark[inPart:]), nil
	}
	inFile := part.from + inPart - markSize
	length := min(int64(len(text)), part.to-inFile)
	text = text[:length]
	return len(text), j.readPart(part, text, inFile)
}

// readPart reads from a part, which remains open up to its end. The error wraps storage.ErrStale if
// the file was replaced or is shorter.
func (j *joined) readPart(p *rolloutPart, text []byte, off int64) (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.at != p {
		j.closePart()
		obj, err := j.files.Open(p.name)
		if err != nil {
			return err
		}
		st, err := obj.Stat()
		if err == nil && !st.SameObject(p.object) {
			err = fmt.Errorf("%w: %s was replaced", storage.ErrStale, p.name)
		}
		if err != nil {
			_ = obj.Close()
			return err
		}
		j.open = obj
		j.at = p
	}
	err = storage.ReadFull(j.open, text, off)
	if err != nil || off+int64(len(text)) == p.to {
		j.closePart()
	}
	return err
}

// closePart closes the open part. Callers must hold j.mu if others have j.
func (j *joined) closePart() {
	if j.at != nil {
		_ = j.open.Close()
		j.open = nil
		j.at = nil
	}
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
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closePart()
	return j.Object.Close()
}
