package fs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/storage/dir"
)

// Places returns the directories that a mount of o reads or writes by their paths. They may be links to another disk, or not
// be there yet. A mount point in one of them would be shown in itself; one around any would keep the mount waiting for
// itself.
func Places(o mountopts.Options, getenv func(string) string) (places []string) {
	if mountopts.IsDatabase(o.Source) {
		if o.Blobs != "" && o.Blobs != mountopts.BlobsInDatabase {
			places = append(places, o.Blobs)
		}
		return places
	}
	places = append(places, o.Source)
	for _, name := range []string{layout.Sessions, blobsName, archiveName, terminalsName} {
		places = append(places, filepath.Join(o.Source, name))
	}
	if o.State != "" {
		places = append(places, filepath.Join(o.State, terminalsName))
	}
	if elsewhere := PiSessions(o.Source, o.Source, getenv); elsewhere != "" {
		places = append(places, elsewhere)
	}
	return append(places, clients.LeaseDirs(getenv, o.Source, o.SourceAs)...)
}

// ErrSource means that SOURCE cannot be mounted as it is.
var ErrSource = errors.New("SOURCE cannot be used")

// checkLink returns an error if root's daemon would follow a link of SOURCE to what is not of the owner of SOURCE: by a
// link named sessions he could otherwise have what is root's written to. s is the directory that the name in SOURCE stands
// for. What is not there yet will be made, so there the directory above must be his.
func checkLink(source *dir.Storage, name string, s *dir.Storage) error {
	at := filepath.Join(source.Path(), name)
	if os.Geteuid() != 0 || s.Path() == at {
		return nil
	}
	st, err := source.Stat("")
	if err != nil || st.UID == 0 {
		return err
	}
	info, err := os.Stat(s.Path())
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(s.Path()))
	}
	if err == nil && info.Sys().(*syscall.Stat_t).Uid != st.UID {
		err = errors.New("it is another user's")
	}
	if err != nil {
		return fmt.Errorf("%w: %s leads to %s, which does not belong to user %d, who owns SOURCE (%w): mount as that user, or put a directory in place of the link",
			ErrSource, at, s.Path(), st.UID, err)
	}
	return nil
}
