// Package blobfs is the blob store: files named after the SHA-256 of their content. The image
// blocks of sessions refer to them (docs/format.md, Persisting).
//
// The package never opens a file with another name, never changes a complete blob and never removes
// one. Only Put verifies the content of an existing blob.
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
type Store struct{ Storage storage.Storage }

var _ document.Blobs = (*Store)(nil)

// check rejects names that are not a SHA-256, so that no reference opens another file
// (docs/design.md section 7).
func check(hash string) error {
	if !document.IsBlobHash(hash) {
		return fmt.Errorf("%w: %q is no SHA-256 in lower-case hex", fs.ErrNotExist, hash)
	}
	return nil
}

// Size returns a blob's size in bytes, or fs.ErrNotExist.
func (s *Store) Size(hash string) (int64, error) {
	err := check(hash)
	if err != nil {
		return 0, err
	}
	st, err := s.Storage.Stat(hash)
	if err != nil {
		return 0, err
	}
	if st.Kind != storage.KindFile {
		return 0, fmt.Errorf("%w: %s", fs.ErrNotExist, hash)
	}
	return st.Size, nil
}

// State returns the token of the directory, which changes with its names, or fs.ErrNotExist.
func (s *Store) State() (storage.Token, error) {
	st, err := s.Storage.Stat("")
	return st.Token, err
}

// Open opens a blob without verifying its content, or returns fs.ErrNotExist.
func (s *Store) Open(hash string) (storage.Object, error) {
	err := check(hash)
	if err != nil {
		return nil, err
	}
	return s.Storage.Open(hash)
}

// verify reports whether the content of a blob has the hash in its name. It reads the whole blob.
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
	_, err = io.Copy(sum, io.NewSectionReader(obj, 0, st.Size))
	if err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == hash, nil
}

var _ writer.BlobPutter = (*Store)(nil)

// Put stores data durably and returns its SHA-256 in lower-case hex. It replaces a partial blob, as
// the client writes blobs in place and without fsync. A complete one gets a new time, because the
// client sweeps blobs without a reference after five minutes and the reference is written later.
//
// If the storage has hard links, the blob gets a second name with the ending, like the client's
// images, so that viewers know their type. A failure of that is only logged.
//
// Put takes no lock: another writer of the same blob writes the same bytes. It returns the errors
// of the storage, and storage.ErrNotRegular if the name is no file.
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

// Copy is Put for the first size bytes of from, which are read twice and not held in memory. It fails, and stores
// nothing, if they do not have the hash. The blob gets no second name.
func (s *Store) Copy(hash string, from io.ReaderAt, size int64) error {
	sum := sha256.New()
	_, err := io.Copy(sum, io.NewSectionReader(from, 0, size))
	if err != nil {
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

// store makes a blob durable with the content that write writes, unless it is complete already. It may call write
// several times.
func (s *Store) store(hash string, write func(io.Writer) error) error {
	for range putTries {
		err := s.put(hash, write)
		if !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
	return storage.ErrStale
}

// link gives a blob a second name with an ending, which tells viewers its format.
func (s *Store) link(hash, ending string) {
	disk, canLink := s.Storage.(storage.HardLinker)
	if !canLink {
		return
	}
	err := disk.HardLink(hash, hash+"."+ending)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		slog.Debug("a blob has no second name", "blob", hash, "ending", ending, "err", err)
	}
}

// putTries is how often Put starts over because another process stores the same blob.
const putTries = 3

// touch gives an existing blob the time of now, so that no cleaner takes it for unused.
func (s *Store) touch(hash string) {
	disk, canTouch := s.Storage.(storage.Toucher)
	if !canTouch {
		return
	}
	err := disk.Touch(hash)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Debug("a blob keeps its time", "blob", hash, "err", err)
	}
}

// put writes a blob, in place of a partial one. It leaves a complete one as it is. The error wraps
// storage.ErrStale if another process wrote the blob meanwhile.
func (s *Store) put(hash string, write func(io.Writer) error) error {
	s.touch(hash)
	var broken storage.Token // of the partial blob; zero if there is none
	st, err := s.Storage.Stat(hash)
	switch {
	case errors.Is(err, fs.ErrNotExist): // broken stays zero
	case err != nil:
		return err
	case st.Kind != storage.KindFile:
		return storage.ErrNotRegular
	default:
		isComplete, err := s.verify(hash)
		if err != nil {
			return err
		}
		if isComplete {
			return s.Storage.Sync(hash) // its writer may not have done it
		}
		broken = st.Token
	}
	_, err = s.Storage.Replace(hash, storage.Replacement{Expect: broken, Write: write})
	return err
}
