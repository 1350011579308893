package sessioncore

import (
	"hash/maphash"
	"io"
	"sync"
	"time"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

// Fingerprints of both ends of what was indexed tell whether a file only grew.

// takeFingerprints hashes both ends of a file that was read as a whole, for the next refresh to compare. The state
// of the file is from no earlier than lookedAt.
func (s *Snapshot) takeFingerprints(lookedAt time.Time) (err error) {
	s.readAt = lookedAt.UnixNano()
	if s.headSum, err = hashAt(s.pin.obj, 0, min(headCheck, s.stat.Size)); err != nil {
		return err
	}
	if s.fingerprints, err = s.hashFingerprints(s.pin.obj); err != nil {
		return err
	}
	s.endsLine, err = storage.EndsInNewline(s.pin.obj, s.stat.Size)
	return err
}

// updateFingerprints is takeFingerprints for a file that grew since an earlier snapshot and whose beginning was
// just found unchanged. w holds what was added.
func (s *Snapshot) updateFingerprints(lookedAt time.Time, earlier *Snapshot, w *jsonl.Window) (err error) {
	if earlier.stat.Size < headCheck {
		return s.takeFingerprints(lookedAt)
	}
	s.readAt = lookedAt.UnixNano()
	s.headSum, s.fingerprints[0] = earlier.headSum, earlier.fingerprints[0]
	if s.fingerprints[1], err = s.hashTail(w); err != nil {
		return err
	}
	s.endsLine, err = storage.EndsInNewline(w, s.stat.Size)
	return err
}

// fingerprintsMatch reports whether both ends of what was indexed still have their fingerprints. The last bytes are
// read from w.
func (s *Snapshot) fingerprintsMatch(w *jsonl.Window) bool {
	head, err := hashAt(s.pin.obj, 0, min(headCheck, s.stat.Size))
	if err != nil || head != s.headSum {
		return false
	}
	if s.headCoversHeader() {
		tail, err := s.hashTail(w)
		return err == nil && tail == s.fingerprints[1]
	}
	now, err := s.hashFingerprints(w)
	return err == nil && now == s.fingerprints
}

// headCoversHeader reports whether the header lies within the bytes that headSum covers.
func (s *Snapshot) headCoversHeader() bool {
	return s.header.off+s.header.size <= min(headCheck, s.stat.Size)
}

// hashFingerprints hashes the header and the last bytes of what was indexed, reading the latter from tail.
func (s *Snapshot) hashFingerprints(tail io.ReaderAt) (hashes [2]uint64, err error) {
	if hashes[0], err = hashAt(s.pin.obj, s.header.off, min(headCheck, s.header.size)); err == nil {
		hashes[1], err = s.hashTail(tail)
	}
	return hashes, err
}

// hashTail hashes the last bytes of what was indexed, reading them from obj.
func (s *Snapshot) hashTail(obj io.ReaderAt) (uint64, error) {
	n := min(tailCheck, s.stat.Size)
	return hashAt(obj, s.stat.Size-n, n)
}

// hashAt hashes n bytes of obj at off. n must not exceed headCheck.
func hashAt(obj io.ReaderAt, off, n int64) (uint64, error) {
	buf := hashBuffers.Get().(*[headCheck]byte)
	defer hashBuffers.Put(buf)
	if err := storage.ReadFull(obj, buf[:n], off); err != nil {
		return 0, err
	}
	return maphash.Bytes(hashSeed, buf[:n]), nil
}

var hashBuffers = sync.Pool{New: func() any { return new([headCheck]byte) }}
