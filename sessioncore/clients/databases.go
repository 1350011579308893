package clients

import (
	"errors"
	"io/fs"
	"time"

	"sessionfs/sessioncore/storage"
)

// databaseNames are the databases that every client keeps open while it runs. Each is in write-ahead mode, so that
// its -wal and -shm files are open as well.
var databaseNames = []string{"agent.db", "history.db", "models.db"}

// clientDatabases are the databases of an agent directory. They are kept open because Writers needs a descriptor, and
// opening the files for each write would cost more than the rest of the check. Their contents are never read.
type clientDatabases struct {
	storage storage.Files
	dir     storage.Token // the directory's token when the names were last looked up
	readAt  int64         // time of that look-up, nanoseconds since the epoch; 0 if never
	list    []clientDatabase
	unseen  bool // a database exists that cannot be opened
}

// watched is an open file that can tell whether a process has it open for writing. If returned is false, the lease with
// which it looked is kept until it is closed.
type watched interface {
	Writers() (state storage.WriterState, returned bool)
}

type clientDatabase struct {
	name string
	open storage.Object
	id   storage.Token // only device and inode are compared
}

// used returns whether a process has one of the databases open for writing.
func (d *clientDatabases) used() storage.WriterState {
	d.look()
	used := storage.WritersNone
	if d.unseen {
		used = storage.WritersUnknown
	}
	for i := range d.list {
		state, returned := storage.WritersUnknown, true
		if file, ok := d.list[i].open.(watched); ok {
			state, returned = file.Writers()
		}
		if !returned {
			d.close() // which also gives up the lease
			d.readAt = 0
			return storage.WritersUnknown
		}
		switch state {
		case storage.WritersPresent:
			return storage.WritersPresent
		case storage.WritersUnknown:
			used = storage.WritersUnknown
		}
	}
	return used
}

// look opens the databases again if the agent directory has changed: a name was added, removed or replaced.
func (d *clientDatabases) look() {
	now := time.Now().UnixNano()
	st, err := d.storage.Stat("")
	if err == nil && d.readAt != 0 && st.Token == d.dir && !st.Token.Racy(d.readAt) {
		return
	}
	d.dir, d.readAt, d.unseen = st.Token, now, false
	known := d.list
	d.list = nil
	for _, name := range databaseNames {
		st, err := d.storage.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind != storage.KindFile:
		case err != nil || !d.take(name, st, known):
			d.unseen = true
		}
	}
	for i := range known {
		if known[i].open != nil {
			_ = known[i].open.Close()
		}
	}
}

// take adds a database to d.list, moving its entry from known if it is open already. It returns false if the database
// cannot be opened.
func (d *clientDatabases) take(name string, st storage.Stat, known []clientDatabase) bool {
	for i := range known {
		if known[i].name == name && known[i].id.SameObject(st.Token) {
			d.list = append(d.list, known[i])
			known[i].open = nil
			return true
		}
	}
	obj, err := d.storage.Open(name)
	if err != nil {
		return false
	}
	if opened, err := obj.Stat(); err != nil || !opened.SameObject(st.Token) {
		_ = obj.Close()
		d.readAt = 0 // it was replaced meanwhile: look again next time
		return false
	}
	d.list = append(d.list, clientDatabase{name, obj, st.Token})
	return true
}

// close closes the databases.
func (d *clientDatabases) close() {
	for i := range d.list {
		_ = d.list[i].open.Close()
	}
	d.list = nil
}

// files returns the files that a client which uses the databases has open.
func (d *clientDatabases) files() (files []storage.Token) {
	for _, db := range databaseNames {
		for _, name := range []string{db, db + "-wal", db + "-shm"} {
			if st, err := d.storage.Stat(name); err == nil && st.Kind == storage.KindFile {
				files = append(files, st.Token)
			}
		}
	}
	return files
}
