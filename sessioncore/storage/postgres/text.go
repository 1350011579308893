package postgres

import (
	"crypto/sha256"
	"io"

	"sessionfs/sessioncore/internal/unnamed"
)

// text is the first n bytes of a content: in memory, or in a file that has no name.
type text struct {
	n    int64
	data []byte
	file *unnamed.File
}

// readAt reads what there is at off.
func (t *text) readAt(p []byte, off int64) (int, error) {
	if off >= t.n {
		return 0, nil
	}
	p = p[:min(int64(len(p)), t.n-off)]
	if t.file != nil {
		return t.file.ReadAt(p, off)
	}
	return copy(p, t.data[off:]), nil
}

// add adds to the end.
func (t *text) add(b []byte) (err error) {
	if t.file != nil {
		_, err = t.file.Write(b)
	} else {
		t.data = append(t.data, b...)
	}
	t.n += int64(len(b))
	return err
}

// sum returns the hash of the text.
func (t *text) sum() ([]byte, error) {
	hash := sha256.New()
	if t.file == nil {
		hash.Write(t.data)
	} else if _, err := io.Copy(hash, io.NewSectionReader(t.file, 0, t.n)); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}

// toFile makes a text one in a file, with what is known.
func (t *text) toFile(dir string, known text) (err error) {
	if t.file == nil {
		if t.file, err = unnamed.New(dir); err == nil {
			_, err = t.file.Write(known.data)
		}
	}
	return err
}
