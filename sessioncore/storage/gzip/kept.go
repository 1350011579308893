package gzip

import (
	"bytes"
	"io"

	"sessionfs/sessioncore/internal/unnamed"
	"sessionfs/sessioncore/storage"
)

// kept is what was unpacked of a file: in memory, or in a temporary file that has no name.
type kept struct {
	io.ReaderAt
	file *unnamed.File // nil if it is in memory
	size int64         // also of what was unpacked before an error
}

func (d kept) close() {
	if d.file != nil {
		_ = d.file.Close()
	}
}

// unpack unpacks a file to its end.
func (k *cache) unpack(obj storage.Object, token storage.Token) (d kept, err error) {
	limit := k.limitOf(token.Size)
	err = unpacking(obj, token, func(in io.Reader) error {
		var small bytes.Buffer
		in = io.LimitReader(in, limit+1)
		if d.size, err = io.CopyN(&small, in, min(limit, k.inMemory)+1); err == io.EOF {
			d.ReaderAt = bytes.NewReader(bytes.Clone(small.Bytes()))
			return nil
		}
		if err == nil && d.size <= limit {
			if d.file, err = unnamed.New(k.temporary); err == nil {
				d.ReaderAt = d.file
				d.size, err = io.Copy(d.file, io.MultiReader(&small, in))
			}
		}
		if err == nil && d.size > limit {
			err = tooLarge(token.Size, limit)
		}
		return err
	})
	if err != nil {
		d.close()
	}
	return d, err
}
