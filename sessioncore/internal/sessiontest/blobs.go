package sessiontest

import (
	"bytes"
	"io/fs"

	"sessionfs/sessioncore/storage"
)

// Blobs is a blob store in memory: contents by hash.
type Blobs map[string][]byte

// Size implements the model's Blobs.
func (b Blobs) Size(hash string) (int64, error) {
	content, ok := b[hash]
	if !ok {
		return 0, fs.ErrNotExist
	}
	return int64(len(content)), nil
}

// Open implements the model's Blobs.
func (b Blobs) Open(hash string) (storage.Object, error) {
	content, ok := b[hash]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return blob{Reader: bytes.NewReader(content)}, nil
}

// blob is an open blob.
type blob struct{ *bytes.Reader }

// Close implements storage.Object.
func (blob) Close() error { return nil }

// Stat implements storage.Object.
func (b blob) Stat() (storage.Stat, error) {
	return storage.Stat{Kind: storage.KindFile, Token: storage.Token{Size: b.Reader.Size()}}, nil
}
