package writer

import (
	"context"
	"path"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/access"
)

// Where several users share a mount, the context of a write has the one for whom it is done (access.With). The daemon
// may write more than he: so each write first asks whether he may do the same with the files below Options.Root. The
// errors wrap fs.ErrPermission.

// mayWrite asks for a write to the session file itself.
func (w *Writer) mayWrite(ctx context.Context, s *sessioncore.Session) error {
	c, _ := access.From(ctx)
	if c == nil {
		return nil
	}
	file, files := path.Join(w.opts.Root, s.Name()), w.store.Storage()
	if files.Pending(s.Name()) {
		st, err := files.Stat(s.Name())
		if err != nil {
			return err
		}
		return c.MayAs(file, st, access.Write)
	}
	_, err := c.May(file, access.Write)
	return err
}

// mayMake asks for a new file in a directory below the root.
func (w *Writer) mayMake(ctx context.Context, dir string) error {
	c, _ := access.From(ctx)
	return c.MayMake(path.Join(w.opts.Root, dir))
}

// mayStore asks for a new blob.
func (w *Writer) mayStore(ctx context.Context) error {
	c, _ := access.From(ctx)
	return c.MayMake(w.opts.BlobsDir)
}

// isForOther reports whether a write is done for a user who has to be asked about and does not own the store.
func (w *Writer) isForOther(ctx context.Context) bool {
	c, _ := access.From(ctx)
	if c == nil {
		return false
	}
	st, err := w.store.Storage().Stat("")
	return err != nil || st.UID != c.UID
}
