package codex

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const (
	// maxFirst is how long the first line of a rollout may be. It has the instructions, some 20 KB.
	maxFirst = 1 << 20
	// maxJoined is how many rollouts are joined.
	maxJoined = 32
	// maxCounted is how many numbers of lines are kept.
	maxCounted = 1 << 12
)

// joined is a rollout that goes on from another one: as if the lines of that, up to where it went on, followed its first line.
type joined struct {
	storage.Object // the rollout
	first          int64
	base           storage.Object // may be a joined one too
	size           int64          // of what is shown of base
	level
}

// part is the beginning of a rollout.
type part struct {
	name string
	size int64
}

// Join implements foreign.Joiner. Where the rollout is not there from which another one goes on, the session has that one's
// own lines.
func (h *Home) Join(name string, obj storage.Object) storage.Object {
	return h.join(name, obj, maxJoined)
}

func (h *Home) join(name string, obj storage.Object, left int) storage.Object {
	first, meta := firstOf(obj)
	from := meta.Member("history_base")
	id, ok := from.Member("thread_id").Text()
	size := foreign.Count(from.Member("end_byte_offset"))
	at := ""
	if ok && size > 0 && left > 0 && id != idOf(name) {
		at = h.find(id)
	}
	if at == "" {
		return obj
	}
	base, err := h.Open(at)
	if err != nil {
		return obj
	}
	lines, err := h.count(base, part{at, size})
	if err != nil {
		_ = base.Close()
		return obj
	}
	file, _ := real(at)
	j := &joined{Object: obj, first: first, base: h.join(at, base, left-1), size: size, level: level{filepath.Join(h.root, file), lines}}
	if b, ok := j.base.(*joined); ok {
		j.size += b.size
	}
	return j
}

// firstOf returns the size of the first line of a rollout, and what it says.
func firstOf(obj storage.Object) (size int64, meta rawjson.Value) {
	for n := int64(32 << 10); n <= maxFirst; n *= 4 {
		text := make([]byte, n)
		have, _ := obj.ReadAt(text, 0)
		if end := bytes.IndexByte(text[:have], '\n'); end >= 0 {
			line := rawjson.Value(bytes.TrimSpace(text[:end]))
			if bytes.Contains(line, []byte(`"history_base"`)) && rawjson.IsValidObject(line) && line.Member("type").Is("session_meta") {
				meta = line.Member("payload")
			}
			return int64(end) + 1, meta
		}
		if int64(have) < n {
			break
		}
	}
	return 0, nil
}

// count returns how many lines the beginning of a rollout has, which must be whole ones.
func (h *Home) count(obj storage.Object, p part) (n int64, err error) {
	h.mu.Lock()
	n, ok := h.counted[p]
	h.mu.Unlock()
	if ok {
		return n, nil
	}
	buf := make([]byte, readAhead)
	for at := int64(0); at < p.size; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), p.size-at)]
		if err := storage.ReadFull(obj, buf, at); err != nil {
			return 0, err
		}
		n += int64(bytes.Count(buf, []byte{'\n'}))
	}
	if buf[len(buf)-1] != '\n' {
		return 0, fmt.Errorf("%w: byte %d of %s is in a line", storage.ErrStale, p.size, p.name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.counted) >= maxCounted {
		clear(h.counted)
	}
	h.counted[p] = n
	return n, nil
}

// before returns what a converter has to know of what is joined (newLineage).
func (j *joined) before() string {
	text := fmt.Sprintf("%d %s\n", j.lines, j.path)
	if b, ok := j.base.(*joined); ok {
		text += b.before()
	}
	return text
}

// ReadAt implements storage.Object.
func (j *joined) ReadAt(p []byte, off int64) (n int, err error) {
	read := func(obj storage.Object, at, end int64) bool { // from at, which is off+n, up to end
		want := p[n:]
		if int64(len(want)) > end-at {
			want = want[:end-at]
		}
		var got int
		got, err = obj.ReadAt(want, at)
		n += got
		return got == len(want) && n < len(p)
	}
	const toItsEnd = 1 << 62
	if at := off; at < j.first && !read(j.Object, at, j.first) {
		return n, err
	}
	if at := off + int64(n) - j.first; at < j.size && !read(j.base, at, j.size) {
		return n, err
	}
	read(j.Object, off+int64(n)-j.size, toItsEnd)
	return n, err
}

// Stat implements storage.Object. The size is that of all that is read.
func (j *joined) Stat() (storage.Stat, error) {
	st, err := j.Object.Stat()
	st.Size += j.size
	return st, err
}

// Close implements storage.Object.
func (j *joined) Close() error { return cmp.Or(j.Object.Close(), j.base.Close()) }
