package transfer

import (
	"context"
	"errors"
	"fmt"

	"sessionfs/sessioncore/storage"
)

// total is the size of all sessions that an import reads, and of the files in which they are:
// compressed, or as another agent writes them, which can let many sessions begin in one file.
type total struct {
	sizes, files int64
	full         bool // more would be refused
}

// maxTotal bounds the size of sessions together, in sizes of their files, if they become larger than
// freeTotal. Real ones become 3 to 30 times as large. Uncompressed files have no bound.
const maxTotal = 128

// freeTotal is a size in bytes: sessions up to it have no bound. Only tests change it.
var freeTotal int64 = 1 << 30

var errBomb = fmt.Errorf("it and what came before it would be more than %d times as large as "+
	"their files: import it by itself", maxTotal)

// open is openContent within the total. The error is errBomb if the session would exceed that.
func (t *total) open(ctx context.Context, files storage.Files, name string) (*openSession, error) {
	st, err := files.Stat(name)
	if t.full && err == nil { // before it is unpacked
		err := t.add(files, name, st.Size)
		if err != nil {
			return nil, err
		}
	}
	c, err := openContent(ctx, files, name)
	if err != nil {
		return nil, err
	}
	return t.weigh(c, files, name)
}

// weigh adds content that is made of a file, or closes it and returns errBomb if that is too much.
func (t *total) weigh(c *openSession, files storage.Files, name string) (*openSession, error) {
	err := t.add(files, name, c.Size)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// add adds the size in bytes of a session that is made of a file. It counts only if it is more than the
// file's. After the first errBomb all others that count are refused too.
func (t *total) add(in storage.Files, name string, size int64) error {
	obj, err := in.Open(name)
	if err != nil {
		return err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	packed, isPacked := obj.(storage.PackedObject)
	if isPacked {
		st.Size = packed.Packed()
	}
	if size <= st.Size {
		return nil
	}
	sizes := t.sizes + size
	files := t.files + st.Size
	if sizes > max(freeTotal, maxTotal*files) {
		t.full = true
	}
	if t.full {
		return errBomb
	}
	t.sizes = sizes
	t.files = files
	return nil
}
