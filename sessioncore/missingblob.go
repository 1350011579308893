package sessioncore

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// blobUse is an entry's reference to a blob.
type blobUse struct {
	entry uint32
	count uint32 // how often the entry refers to it
	hash  [document.HashLen / 2]byte
}

// maxBlobUses is the maximum number of references per session that are checked. Each costs 40 bytes, and a stat
// whenever the blobs have changed.
const maxBlobUses = 20_000

// addBlobUses records the blob references of an entry. It is called only for entries in which a string has the blob
// prefix.
func (x *index) addBlobUses(text rawjson.Value, entry uint32) {
	before := len(x.blobUses)
	document.EachReference(text, func(hash string) {
		use := blobUse{entry: entry, count: 1}
		_, _ = hex.Decode(use.hash[:], []byte(hash))
		same := slices.IndexFunc(x.blobUses[before:], func(u blobUse) bool { return u.hash == use.hash })
		switch {
		case same >= 0:
			x.blobUses[before+same].count++
		case len(x.blobUses) < maxBlobUses:
			x.blobUses = append(x.blobUses, use)
		default:
			x.blobUsesMore = true
		}
	})
}

// blobState is implemented by blob stores that can tell when blobs were added or removed: the token changes.
type blobState interface {
	State() (storage.Token, error)
}

// missingBlobs caches which references of a session have no blob, until the store changes. The snapshots of one
// index share it.
type missingBlobs struct {
	mu     sync.Mutex    // guards the fields below
	state  storage.Token // of the store when the references were checked
	looked int           // number of references that were checked
	gone   []int         // numbers of those without a blob
	bytes  int64         // what the others take in a context, in bytes
}

// missingBlobsKey is the key of the missingBlobs in Snapshot.Shared.
type missingBlobsKey struct{}

// of returns the references of a snapshot whose blobs are missing, and what the others take in a context at most.
func (m *missingBlobs) of(ctx context.Context, s *Snapshot, blobs document.Blobs) (gone []blobUse, bytes int64, err error) {
	if len(s.blobUses) == 0 || blobs == nil {
		return nil, 0, nil
	}
	if err := storage.LockUntil(ctx, &m.mu); err != nil {
		return nil, 0, err
	}
	defer m.mu.Unlock()
	keep, err := m.compare(blobs)
	if err != nil {
		return nil, 0, err
	}
	if err = m.look(ctx, s.blobUses, blobs); err != nil {
		keep = false
	}
	bytes = m.bytes
	for _, n := range m.gone {
		if n < len(s.blobUses) {
			gone = append(gone, s.blobUses[n])
		}
	}
	if !keep {
		m.looked, m.gone, m.bytes = 0, nil, 0
	}
	return gone, bytes, err
}

// compare clears the cache if the store has changed. keep reports whether the results of this check may be cached.
func (m *missingBlobs) compare(blobs document.Blobs) (keep bool, err error) {
	now := time.Now().UnixNano()
	var state storage.Token
	store, ok := blobs.(blobState)
	if ok {
		if state, err = store.State(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	if state != m.state {
		m.state, m.looked, m.gone, m.bytes = state, 0, nil, 0
	}
	return ok && !state.Racy(now), nil
}

// look checks the references that have not been checked yet.
func (m *missingBlobs) look(ctx context.Context, uses []blobUse, blobs document.Blobs) error {
	const missing = -1
	sizes := map[[document.HashLen / 2]byte]int64{}
	for ; m.looked < len(uses); m.looked++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		use := uses[m.looked]
		size, known := sizes[use.hash]
		if !known {
			var err error
			if size, err = blobs.Size(hex.EncodeToString(use.hash[:])); errors.Is(err, fs.ErrNotExist) {
				size = missing
			} else if err != nil {
				return err
			}
			sizes[use.hash] = size
		}
		if size == missing {
			m.gone = append(m.gone, m.looked)
		} else {
			blob := rawjson.Blob{Base64: true, Bytes: size}
			m.bytes += int64(use.count) * blob.Size()
		}
	}
	return nil
}

// unresolved returns the number of references that the context at the leaf has no room for.
func (s *Snapshot) unresolved(ctx context.Context, blobs document.Blobs) (int, error) {
	leaf, err := s.Leaf()
	if err != nil {
		return 0, err
	}
	doc, err := s.Context(ctx, leaf, blobs)
	if err != nil {
		return 0, err
	}
	defer doc.Close()
	return doc.Unresolved(), nil
}

// missingProblems returns a problem for each reference to a missing blob. large says that there may be references that a
// context has no room for.
func (s *Snapshot) missingProblems(ctx context.Context, blobs document.Blobs) (list []Problem, large bool, err error) {
	known := s.Shared(missingBlobsKey{}, func() any { return &missingBlobs{} }).(*missingBlobs)
	gone, bytes, err := known.of(ctx, s, blobs)
	if err != nil {
		return nil, false, err
	}
	list = make([]Problem, len(gone))
	for i, use := range gone {
		list[i] = s.problemOf(Entry(use.entry), ProblemBlob, "the blob "+hex.EncodeToString(use.hash[:])+" is not in blobs/")
	}
	return list, bytes > document.MaxResolved || s.blobUsesMore && blobs != nil, nil
}
