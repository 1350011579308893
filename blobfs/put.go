package blobfs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

var _ writer.BlobPutter = (*Store)(nil)

// Put stores data durably under its SHA-256 in lower-case hex and returns the hash (docs/format.md,
// Persisting). A complete blob of that name is left alone. The client writes blobs in place and without
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

// putTries is how often Put starts over because another process stores the same blob.
const putTries = 3

func (s *Store) put(hash string, write func(io.Writer) error) error {
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
