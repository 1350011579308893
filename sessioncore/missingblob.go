package sessioncore

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
)

// blobUse is an entry's reference to a blob.
type blobUse struct {
	entry uint32
	count uint32 // how often the entry refers to it
	hash  [document.HashLen / 2]byte
}

// maxBlobUses is the maximum number of references per session that are checked. Each costs 40 bytes, and each
// blob a stat whenever problems.jsonl is rendered.
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

// missingProblems returns a problem for each reference to a missing blob, none if blobs is nil. large says that there may
// be references that a context has no room for.
func (s *Snapshot) missingProblems(ctx context.Context, blobs document.Blobs) (list []Problem, large bool, err error) {
	if blobs == nil {
		return nil, false, nil
	}
	const missing = -1
	var bytes int64 // what the blobs take in a context
	sizes := map[[document.HashLen / 2]byte]int64{}
	for _, use := range s.blobUses {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		hash := hex.EncodeToString(use.hash[:])
		size, known := sizes[use.hash]
		if !known {
			if size, err = blobs.Size(hash); errors.Is(err, fs.ErrNotExist) {
				size = missing
			} else if err != nil {
				return nil, false, err
			}
			sizes[use.hash] = size
		}
		if size == missing {
			list = append(list, s.problemOf(Entry(use.entry), ProblemBlob, "the blob "+hash+" is not in blobs/"))
		} else {
			blob := rawjson.Blob{Base64: true, Bytes: size}
			bytes += int64(use.count) * blob.Size()
		}
	}
	return list, bytes > document.MaxResolved || s.blobUsesMore, nil
}
