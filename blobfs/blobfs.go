package blobfs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// Store reads blobs from a storage that holds them directly in its root.
type Store struct {
	storage storage.Storage
}

var _ document.Blobs = (*Store)(nil)

// New returns the store over a storage.
func New(storage storage.Storage) *Store { return &Store{storage: storage} }

// check rejects names that are not a SHA-256, so that a blob reference never opens another file (docs/design.md
// section 7).
func check(hash string) error {
	if !document.IsBlobHash(hash) {
		return fmt.Errorf("%w: %q is no SHA-256 in lower-case hex", fs.ErrNotExist, hash)
	}
	return nil
}

// Size returns a blob's size in bytes, or fs.ErrNotExist.
func (s *Store) Size(hash string) (int64, error) {
	if err := check(hash); err != nil {
		return 0, err
	}
	st, err := s.storage.Stat(hash)
	if err != nil {
		return 0, err
	}
	if st.Kind != storage.KindFile {
		return 0, fmt.Errorf("%w: %s", fs.ErrNotExist, hash)
	}
	return st.Size, nil
}

// State returns the token of the directory, which changes when a blob is added or removed, or fs.ErrNotExist.
func (s *Store) State() (storage.Token, error) {
	st, err := s.storage.Stat("")
	return st.Token, err
}

// Open opens a blob, or returns fs.ErrNotExist. It does not verify the content.
func (s *Store) Open(hash string) (storage.Object, error) {
	if err := check(hash); err != nil {
		return nil, err
	}
	return s.storage.Open(hash)
}

// checker is a storage that can tell whether the content of a blob has the hash that its name says, without all of it
// being read here.
type checker interface {
	IsWhole(hash string) (bool, error)
}

// verify reports whether the content of a blob has the hash that its name says. It reads the blob, unless the storage can
// tell.
func (s *Store) verify(hash string) (bool, error) {
	if c, ok := s.storage.(checker); ok {
		return c.IsWhole(hash)
	}
	obj, err := s.Open(hash)
	if err != nil {
		return false, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return false, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(obj, 0, st.Size)); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == hash, nil
}
