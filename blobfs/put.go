package blobfs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

var _ sessioncore.BlobPutter = (*Store)(nil)

// Put stores data under its SHA-256 in lower-case hex, durably, and returns that (docs/format.md,
// Persisting). A blob that is there and whole stays as it is. The client writes blobs in place and
// without fsync, so that a crash can leave a part of one: that is replaced by the whole.
//
// It takes no lock, since whoever else stores the blob stores the same. Errors: those of the storage,
// sessioncore.ErrNotRegular where something that is no file has the name.
func (s *Store) Put(data []byte) (hash string, err error) {
	sum := sha256.Sum256(data)
	hash = hex.EncodeToString(sum[:])
	for range putTries {
		if err = s.put(hash, data); !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("store blob %s: %w", hash, err)
	}
	return hash, nil
}

// putTries: how often storing is begun anew where somebody else stores the same blob.
const putTries = 3

func (s *Store) put(hash string, data []byte) error {
	var broken storage.Token // zero: there is none
	switch st, err := s.storage.Stat(hash); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case st.Kind != storage.KindFile:
		return storage.ErrNotRegular
	default:
		if whole, err := s.verify(hash); err != nil {
			return err
		} else if whole {
			return s.storage.Sync(hash)
		}
		broken = st.Token
	}
	err := s.storage.MkdirAll("") // the client makes it with the first blob too
	if err != nil && !errors.Is(err, storage.ErrUnsupported) {
		return err
	}
	_, err = s.storage.Replace(hash, broken, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
	return err
}
