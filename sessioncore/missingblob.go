package sessioncore

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// blobUse is an entry's reference to a blob.
type blobUse struct {
	entry uint32
	hash  [hashLen / 2]byte
}

// maxBlobUses is the maximum number of references per session that are checked. Each costs 36 bytes, and a stat
// whenever the blobs have changed.
const maxBlobUses = 20_000

// addBlobUses records the blob references of an entry. It is called only for entries in which a string has the blob
// prefix.
func (x *index) addBlobUses(text rawjson.Value, entry uint32) {
	before := len(x.blobUses)
	eachBlobReference(text, func(hash string) {
		use := blobUse{entry: entry}
		_, _ = hex.Decode(use.hash[:], []byte(hash))
		switch {
		case slices.Contains(x.blobUses[before:], use):
		case len(x.blobUses) < maxBlobUses:
			x.blobUses = append(x.blobUses, use)
		default:
			x.blobUsesMore = true
		}
	})
}

// eachBlobReference calls f for each blob reference in an entry: a string under the key data, as in image blocks,
// or image_url.
func eachBlobReference(text rawjson.Value, f func(hash string)) {
	var s rawjson.Scanner
	key := false // the last string was one of the keys
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"':
			end, _ := s.SkipString(text, i+1)
			token := text[i:end]
			if next := rawjson.SkipSpace(text, end); next < len(text) && text[next] == ':' {
				key = token.Is("data") || token.Is("image_url")
			} else if hash, ok := BlobHash(token); ok && key {
				f(hash)
			}
			i = end
		case '{', '[':
			i, key = i+1, false
		default:
			i++
		}
	}
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
}

// missingBlobsKey is the key of the missingBlobs in Snapshot.Shared.
type missingBlobsKey struct{}

// of returns the references of a snapshot whose blobs are missing.
func (m *missingBlobs) of(ctx context.Context, s *Snapshot, blobs Blobs) ([]blobUse, error) {
	if len(s.blobUses) == 0 || blobs == nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	keep, err := m.compare(blobs)
	if err != nil {
		return nil, err
	}
	if err = m.look(ctx, s.blobUses, blobs); err != nil {
		keep = false
	}
	var gone []blobUse
	for _, n := range m.gone {
		if n < len(s.blobUses) {
			gone = append(gone, s.blobUses[n])
		}
	}
	if !keep {
		m.looked, m.gone = 0, nil
	}
	return gone, err
}

// compare clears the cache if the store has changed. keep reports whether the results of this check may be cached.
func (m *missingBlobs) compare(blobs Blobs) (keep bool, err error) {
	now := time.Now().UnixNano()
	var state storage.Token
	store, ok := blobs.(blobState)
	if ok {
		if state, err = store.State(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	if state != m.state {
		m.state, m.looked, m.gone = state, 0, nil
	}
	return ok && !state.Racy(now), nil
}

// look checks the references that have not been checked yet.
func (m *missingBlobs) look(_ context.Context, uses []blobUse, blobs Blobs) error {
	there := map[[hashLen / 2]byte]bool{}
	for ; m.looked < len(uses); m.looked++ {
		hash := uses[m.looked].hash
		found, known := there[hash]
		if !known {
			_, err := blobs.Size(hex.EncodeToString(hash[:]))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			found = err == nil
			there[hash] = found
		}
		if !found {
			m.gone = append(m.gone, m.looked)
		}
	}
	return nil
}

// missingProblems returns a problem for each reference to a missing blob.
func (s *Snapshot) missingProblems(ctx context.Context, blobs Blobs) ([]Problem, error) {
	known := s.Shared(missingBlobsKey{}, func() any { return &missingBlobs{} }).(*missingBlobs)
	gone, err := known.of(ctx, s, blobs)
	if err != nil {
		return nil, err
	}
	list := make([]Problem, len(gone))
	for i, use := range gone {
		list[i] = s.problemOf(Entry(use.entry), ProblemBlob, "the blob "+hex.EncodeToString(use.hash[:])+" is not in blobs/")
	}
	return list, nil
}
