package fs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// ErrSource means that SOURCE cannot be mounted as it is.
var ErrSource = errors.New("SOURCE cannot be used")

// checkLink returns an error if root's daemon would follow a link of SOURCE where the owner of SOURCE may not go himself:
// by a link named sessions he could otherwise have what is root's shown, and written to. s is the directory that the name
// in SOURCE stands for. What is not there yet will be made, so there he must be allowed to make it.
func checkLink(source *dir.Storage, name string, s *dir.Storage) error {
	at := filepath.Join(source.Path(), name)
	if os.Geteuid() != 0 || s.Path() == at {
		return nil
	}
	st, err := source.Stat("")
	if err != nil || st.UID == 0 {
		return err
	}
	owner := access.OfUser(st.UID)
	if _, err = owner.May(s.Path(), access.Read|access.Search); storage.IsMissing(err) {
		err = owner.MayMake(filepath.Dir(s.Path()))
	}
	if err != nil {
		return fmt.Errorf("%w: %s leads to %s, where user %d, who owns SOURCE, may not go (%w): mount as that user, let him in there, or put a directory in place of the link",
			ErrSource, at, s.Path(), st.UID, err)
	}
	return nil
}
