package sessioncore

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// blobUse is a reference of an entry to a blob.
type blobUse struct {
	entry uint32
	hash  [hashLen / 2]byte
}

// maxBlobUses is how many references of a session are looked after, each of which costs 36 bytes and a stat when the
// blobs have changed.
const maxBlobUses = 20_000

// addBlobUses notes the references of an entry in which a string begins as they do.
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

// eachBlobReference calls f for each reference to a blob in an entry: a string under the key data, as image blocks
// have it, or image_url.
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

// blobState is a store of blobs that can tell when blobs came or went: then its token is another one.
type blobState interface {
	State() (storage.Token, error)
}

// missingBlobs remembers which references of a session lead to no blob, for as long as no blob comes or goes. The
// snapshots of one index share it.
type missingBlobs struct {
	mu     sync.Mutex    // guards what follows
	state  storage.Token // of the store when it was looked at
	looked int           // how many of the references were
	gone   []int         // numbers of those that lead nowhere
}

// missingBlobsKey is the key of a session's missingBlobs among what its snapshots share.
type missingBlobsKey struct{}

// of returns the references of a snapshot to blobs that are not there.
func (m *missingBlobs) of(s *Snapshot, blobs Blobs) ([]blobUse, error) {
	if len(s.blobUses) == 0 || blobs == nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	keep, err := m.compare(blobs)
	if err != nil {
		return nil, err
	}
	if err = m.look(s.blobUses, blobs); err != nil {
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

// compare forgets what was found out if the store is another one now, and reports whether what is found out now
// can be kept.
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

// look looks for the blobs of references that were not looked at.
func (m *missingBlobs) look(uses []blobUse, blobs Blobs) error {
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

// missingProblems returns a problem for each reference to a blob that is not there.
func (s *Snapshot) missingProblems(blobs Blobs) ([]Problem, error) {
	known := s.Shared(missingBlobsKey{}, func() any { return &missingBlobs{} }).(*missingBlobs)
	gone, err := known.of(s, blobs)
	if err != nil {
		return nil, err
	}
	list := make([]Problem, len(gone))
	for i, use := range gone {
		list[i] = s.problemOf(Entry(use.entry), ProblemBlob, "the blob "+hex.EncodeToString(use.hash[:])+" is not in blobs/")
	}
	return list, nil
}
