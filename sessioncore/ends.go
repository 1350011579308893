package sessioncore

import (
	"hash/maphash"
	"io"
	"sync"
	"time"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

// Both ends of what was indexed of a file tell whether it only grew.

// lookAtEnds notes what the next refresh needs of both ends of a file that was read as a whole. The file was
// looked at at or after lookedAt.
func (s *Snapshot) lookAtEnds(lookedAt time.Time) (err error) {
	s.readAt = lookedAt.UnixNano()
	if s.headSum, err = hashAt(s.pin.obj, 0, min(headCheck, s.stat.Size)); err != nil {
		return err
	}
	if s.ends, err = s.hashEnds(s.pin.obj); err != nil {
		return err
	}
	s.endsLine, err = storage.EndsInNewline(s.pin.obj, s.stat.Size)
	return err
}

// lookAtGrowth does the same for a file that grew from an earlier snapshot, whose beginning was just found
// unchanged; w shows what was added.
func (s *Snapshot) lookAtGrowth(lookedAt time.Time, earlier *Snapshot, w *jsonl.Window) (err error) {
	if earlier.stat.Size < headCheck {
		return s.lookAtEnds(lookedAt)
	}
	s.readAt = lookedAt.UnixNano()
	s.headSum, s.ends[0] = earlier.headSum, earlier.ends[0]
	if s.ends[1], err = s.hashTail(w); err != nil {
		return err
	}
	s.endsLine, err = storage.EndsInNewline(w, s.stat.Size)
	return err
}

// endsUnchanged compares both ends of what was indexed; w shows the last one.
func (s *Snapshot) endsUnchanged(w *jsonl.Window) bool {
	head, err := hashAt(s.pin.obj, 0, min(headCheck, s.stat.Size))
	if err != nil || head != s.headSum {
		return false
	}
	if s.headCoversHeader() {
		tail, err := s.hashTail(w)
		return err == nil && tail == s.ends[1]
	}
	ends, err := s.hashEnds(w)
	return err == nil && ends == s.ends
}

// headCoversHeader reports whether the header lies within the bytes that headSum is of.
func (s *Snapshot) headCoversHeader() bool {
	return s.header.off+s.header.size <= min(headCheck, s.stat.Size)
}

func hashAt(obj io.ReaderAt, off, n int64) (uint64, error) {
	buf := hashBuffers.Get().(*[headCheck]byte)
	defer hashBuffers.Put(buf)
	if err := storage.ReadFull(obj, buf[:n], off); err != nil {
		return 0, err
	}
	return maphash.Bytes(hashSeed, buf[:n]), nil
}

var hashBuffers = sync.Pool{New: func() any { return new([headCheck]byte) }}
