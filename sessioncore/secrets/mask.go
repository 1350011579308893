package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"sessionfs/sessioncore/storage"
)

// maskedObject is a pinned file with asterisks in place of its secrets.
type maskedObject struct {
	obj     storage.Object
	mask    *mask
	rules   *Rules
	version maskVersion // when it was opened
}

// maskVersion identifies a state of a mask.
type maskVersion struct {
	content int // number of changes of the file
	remasks int // number of changes that mask earlier text differently
}

// mask holds the places of the secrets in a file.
type mask struct {
	id      fileID
	counted int // places counted in Storage.places; guarded by its mutex

	mu      sync.Mutex // guards the fields below; held while the file is searched
	scan    *Scan
	places  []SecretPlace // never changed, only replaced
	token   storage.Token // of the searched state
	at      int64         // when token was current, ns since the epoch
	sum     uint64        // hash of the searched bytes
	version maskVersion
}

// tries bounds how often a read is repeated because the file changed meanwhile.
const tries = 5

// current searches the new part of a file, and returns the mask's version then.
func (m *mask) current(obj storage.Object, rules *Rules) (maskVersion, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.update(obj, rules)
	return m.version, err
}

// update brings the mask up to date. A file that seems only to have grown is hashed up to the
// searched size, as an edit in the middle may have added a secret. Callers must hold m.mu.
func (m *mask) update(obj storage.Object, rules *Rules) error {
	now := time.Now().UnixNano()
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	isCurrent := m.scan != nil && st.Token == m.token && !st.Racy(m.at)
	if isCurrent {
		return nil
	}
	sum, isGrowth, err := m.hash(obj, st.Size)
	if err != nil {
		return err
	}
	isSame := isGrowth && st.Size == m.token.Size // only the times of the file have changed
	if !isSame {
		err := m.search(obj, rules, st.Size, isGrowth)
		if err != nil {
			return err
		}
	}
	m.token = st.Token
	m.at = now
	m.sum = sum
	return nil
}

// hash returns the hash of the first size bytes of a file. isGrowth reports whether they begin with all bytes that
// were searched. Callers must hold m.mu.
func (m *mask) hash(obj storage.Object, size int64) (sum uint64, isGrowth bool, err error) {
	in := io.NewSectionReader(obj, 0, size)
	hash := xxhash.New()
	rest := size
	if m.scan != nil && size >= m.token.Size {
		searched, err := io.CopyN(hash, in, m.token.Size)
		if err != nil {
			return 0, false, readError(err)
		}
		isGrowth = hash.Sum64() == m.sum
		rest -= searched
	}
	n, err := io.Copy(hash, in)
	if err != nil || n < rest {
		return 0, false, readError(err)
	}
	return hash.Sum64(), isGrowth, nil
}

// search searches the first size bytes of a file, or with isGrowth only the bytes that it has more now. It sets
// the scan, the places and the version. After an error there is no scan, so that the next search is one of the
// whole file. Callers must hold m.mu.
func (m *mask) search(obj storage.Object, rules *Rules, size int64, isGrowth bool) error {
	before := m.scan
	scan := before
	if !isGrowth {
		scan = &Scan{Rules: rules}
	}
	settled := int64(0) // earlier bytes keep their masks if the file grows
	if before != nil {
		settled = before.Next()
	}
	m.scan = nil // Extend may leave it unusable
	err := scan.Extend(context.Background(), obj, size)
	if err != nil {
		return searchError(err)
	}
	oldPlaces := placesBefore(m.places, settled)
	newPlaces := placesBefore(scan.Places, settled)
	if !slices.Equal(oldPlaces, newPlaces) {
		m.version.remasks++
	}
	m.scan = scan
	m.places = slices.Clone(scan.Places)
	m.version.content++
	return nil
}

// placesBefore returns the places, which are in the order of offsets, that begin before an offset.
func placesBefore(places []SecretPlace, off int64) []SecretPlace {
	count := sort.Search(len(places), func(i int) bool {
		return places[i].Offset >= off
	})
	return places[:count]
}

// readError is the error for a file that could not be read up to its size: err, or ErrStale if that is nil or
// io.EOF.
func readError(err error) error {
	if err == nil || err == io.EOF {
		return fmt.Errorf("%w: it was cut while it was searched for secrets", storage.ErrStale)
	}
	return err
}

// searchError makes an error of a file with too many secrets one of a file that nobody may read.
func searchError(err error) error {
	if errors.Is(err, errTooMany) {
		return fmt.Errorf("%w: it has %w", fs.ErrPermission, err)
	}
	return err
}

// ReadAt implements storage.Object. The error is storage.ErrStale if bytes that this object may
// have returned before are now masked differently. After an error p has no bytes of the file.
func (o *maskedObject) ReadAt(p []byte, off int64) (int, error) {
	for range tries {
		places, size, before, err := o.places()
		if err != nil {
			return 0, err
		}
		left := max(0, size-off)
		part := p[:min(int64(len(p)), left)] // the bytes behind were not searched
		n, err := o.obj.ReadAt(part, off)
		after, updateErr := o.mask.current(o.obj, o.rules)
		if updateErr != nil {
			clear(p)
			return 0, updateErr
		}
		if before != after { // the bytes may be others than those that were searched
			continue
		}
		Hide(p[:n], off, places)
		if err == nil && n < len(p) {
			err = io.EOF
		}
		return n, err
	}
	clear(p)
	return 0, fmt.Errorf("%w: it changes all the time", storage.ErrStale)
}

// places returns the places masked in the first size bytes of the file, which is all of it, and the version of the
// mask. The error is storage.ErrStale if earlier bytes are masked differently than when the file was opened.
func (o *maskedObject) places() (places []SecretPlace, size int64, version maskVersion, err error) {
	m := o.mask
	m.mu.Lock()
	defer m.mu.Unlock()
	err = m.update(o.obj, o.rules)
	if err == nil && m.version.remasks != o.version.remasks {
		err = fmt.Errorf("%w: more of it is masked now", storage.ErrStale)
	}
	return m.places, m.token.Size, m.version, err
}

// Kinds returns the number of masked secrets by rule, as of the last search if the file cannot be read now.
func (o *maskedObject) Kinds() map[string]int {
	kinds := map[string]int{}
	places, _, _, _ := o.places()
	for _, place := range places {
		kinds[place.Kind]++
	}
	return kinds
}

// Search extends a scan to the secrets in the first size bytes of the file.
func (o *maskedObject) Search(ctx context.Context, scan *Scan, size int64) error {
	scan.Rules = o.rules
	return scan.Extend(ctx, o.obj, size)
}

// Close implements storage.Object.
func (o *maskedObject) Close() error { return o.obj.Close() }

// calledObject is the file of a session that another one may have called.
type calledObject interface {
	InCaller(ctx context.Context, ids map[string]bool) (found map[string]bool, err error)
}

// InCaller returns those ids that are records of the session that called the masked one, nil if it was not
// called.
func (o *maskedObject) InCaller(ctx context.Context, ids map[string]bool) (found map[string]bool, err error) {
	file, isCalled := o.obj.(calledObject)
	if !isCalled {
		return nil, nil
	}
	return file.InCaller(ctx, ids)
}

// Stat implements storage.Object.
func (o *maskedObject) Stat() (storage.Stat, error) { return o.obj.Stat() }
