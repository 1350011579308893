// Package blobfs is the blob store: files named after the SHA-256 of their content, to which the image
// blocks of sessions refer (docs/format.md, Persisting).
//
// [Store.Open] and [Store.Size] serve readers of sessions, [Store.Put] serves writers. Put writes a blob to a
// temporary file, syncs it and renames it, so that a blob is complete once it has its name.
//
// The package never opens a file whose name is not a SHA-256, never changes the content of a complete blob, and never
// removes one. Open does not verify the content; Put does, of a blob that exists.
package blobfs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
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

// verify reports whether the content of a blob has the hash that its name says.
func (s *Store) verify(hash string) (bool, error) {
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

var _ writer.BlobPutter = (*Store)(nil)

// Put stores data durably under its SHA-256 in lower-case hex and returns the hash (docs/format.md,
// Persisting). Of a complete blob of that name only the time becomes now: the client sweeps blobs that no file names once
// they are five minutes old, and the line that is to name it comes later. A database has no such sweep. The client writes blobs in place and without
// fsync, so a crash can leave a partial one: Put replaces it.
//
// Where the file system has links, the blob gets a second name with the ending, as the client gives images one by
// which viewers know what they are. Nothing else refers to it, so that it does not matter if that fails.
//
// Put takes no lock: another writer of the same blob writes the same bytes. It returns the errors of the storage,
// and storage.ErrNotRegular if the name is taken by something that is not a file.
func (s *Store) Put(data []byte, ending string) (hash string, err error) {
	sum := sha256.Sum256(data)
	hash = hex.EncodeToString(sum[:])
	err = s.store(hash, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("store blob %s: %w", hash, err)
	}
	if ending != "" {
		s.link(hash, ending)
	}
	return hash, nil
}

// Copy is Put for content that is read twice instead of being held. It fails, and writes nothing, unless that has the hash.
func (s *Store) Copy(hash string, from io.ReaderAt, size int64) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(from, 0, size)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != hash {
		return errors.New("its content is not what its name says")
	}
	return s.store(hash, func(out io.Writer) error {
		_, err := io.Copy(out, io.NewSectionReader(from, 0, size))
		return err
	})
}

// store stores what write writes, unless there is a complete blob of that name.
func (s *Store) store(hash string, write func(io.Writer) error) error {
	for range putTries {
		err := s.put(hash, write)
		if !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
	return storage.ErrStale
}

// linker is a storage whose files can have a second name.
type linker interface {
	HardLink(name, second string) error
}

func (s *Store) link(hash, ending string) {
	disk, ok := s.storage.(linker)
	if !ok {
		return
	}
	err := disk.HardLink(hash, hash+"."+ending)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		slog.Debug("a blob has no second name", "blob", hash, "ending", ending, "err", err)
	}
}

// toucher is a storage whose files have a time, by which they are swept.
type toucher interface {
	Touch(name string) error
}

// putTries is how often Put starts over because another process stores the same blob.
const putTries = 3

func (s *Store) put(hash string, write func(io.Writer) error) error {
	if disk, ok := s.storage.(toucher); ok {
		if err := disk.Touch(hash); err != nil && !errors.Is(err, fs.ErrNotExist) {
			slog.Debug("a blob keeps its time", "blob", hash, "err", err)
		}
	}
	var broken storage.Token // of the partial blob; zero if there is none
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
	_, err := s.storage.Replace(hash, storage.Replacement{Expect: broken, Write: write})
	return err
}
