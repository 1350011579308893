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
	mark   string
	name   string        // in Days
	path   string        // of the file, absolute
	object storage.Token // the file when it was found
	from   int64         // offset of its first byte in the file
	to     int64         // offset of its end
	at     int64         // bytes of the chain before its mark
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
// for one that is not open. A rollout without a whole first line is an error.
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
		if err != nil {
			return b, err
		}
		b.size = int64(len(line))
		b.base = baseIn(bytes.TrimSpace(line))
		return b, nil
	})
}

// baseIn returns the place that a rollout with this first line continues, the zero value if it continues none.
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

// chainOf follows a rollout, which goes on from a place, back to its beginning. A rollout that is missing, or was in the
// chain before, ends it.
func (h *Home) chainOf(name string, from base) *chain {
	c := &chain{}
	visited := map[string]bool{name: true}
	child := name
	for from.thread != "" {
		origin, st, ok := h.find(from.thread)
		if !ok {
			c.addProblem(child, from, "which is not there: it is left out")
			break
		}
		if visited[origin] {
			c.addProblem(child, from, "which goes on from this one: the circle is cut here")
			c.isCircle = true
			break
		}
		head, err := h.beginningOf(origin, st, nil)
		if err != nil {
			c.addProblem(child, from, "which cannot be read and is left out: "+err.Error())
			break
		}
		if st.Size < from.size {
			reason := fmt.Sprintf("which has whole lines up to byte %d: these are shown", st.Size)
			c.addProblem(child, from, reason)
		}
		end := min(from.size, st.Size)
		if end > head.size {
			c.parts = append(c.parts, h.partOf(origin, st, head.size, end))
		}
		visited[origin] = true
		from = head.base
		child = origin
	}
	c.layOut()
	return c
}

// addProblem adds the reason why a rollout, child, is shown without the place that it goes on from.
func (c *chain) addProblem(child string, from base, reason string) {
	problem := fmt.Sprintf("%s goes on from byte %d of %s, %s", idOf(child), from.size, from.thread, reason)
	c.problems = append(c.problems, problem)
}

// partOf returns the part of a rollout in the state st from one byte to another, without its mark.
func (h *Home) partOf(name string, st storage.Stat, from, to int64) rolloutPart {
	file, _, _ := inHome(name)
	return rolloutPart{
		name:   name,
		path:   filepath.Join(h.root, file),
		object: st.Token,
		from:   from,
		to:     to,
	}
}

// layOut sets the places of the parts, which are the last one first, and adds the rest behind them. It does nothing for
// a chain without parts.
func (c *chain) layOut() {
	if len(c.parts) == 0 {
		return
	}
	slices.Reverse(c.parts)
	rest := rolloutPart{}
	c.parts = append(c.parts, rest)
	for i := range c.parts {
		p := &c.parts[i]
		p.at = c.size
		p.mark = fmt.Sprintf("\n%s%d}\n", markPrefix, i+1)
		c.size += int64(len(p.mark)) + p.to - p.from
	}
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
	storage.Object       // the rollout
	first          int64 // bytes of its first line
	*chain
	files storage.Files

	mu   sync.Mutex     // guards the fields below
	open storage.Object // the file of a part that is read, or nil
	at   *rolloutPart
}

// Join implements agents.Joiner. It returns obj where the rollout goes on from none, or cannot be read; the parts of a
// chain that cannot be shown are in its problems.
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

// readSome reads up to the end of a part or of its mark: n is at most len(text), and can be less without an error.
// The text is, with the bytes of the rollout in [ ]:
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
		err := j.openPart(p)
		if err != nil {
			return err
		}
	}
	err = storage.ReadFull(j.open, text, off)
	isAtEnd := off+int64(len(text)) == p.to
	if err != nil || isAtEnd {
		j.closePart()
	}
	return err
}

// openPart opens the file of a part. Callers must hold j.mu, and have no other part open.
func (j *joined) openPart(p *rolloutPart) error {
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
	return nil
}

// closePart closes the open part, if there is one. Callers must hold j.mu if others have j.
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
