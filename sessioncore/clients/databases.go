package clients

import (
	"errors"
	"io/fs"
	"time"

	"sessionfs/sessioncore/storage"
)

// databaseNames are what every client has open while it lives, each in write-ahead mode with two more files
// beside it that are open then as well.
var databaseNames = []string{"agent.db", "history.db", "models.db"}

// clientDatabases are the databases of an agent directory. They stay open: a look at a lease needs a descriptor, and
// opening one for every write would cost more than all the rest. Nothing is ever read of them.
type clientDatabases struct {
	storage storage.Storage
	dir     storage.Token // of the agent directory, when its names were looked up last
	readAt  int64         // then, nanoseconds since the epoch; 0: never
	list    []clientDatabase
	unseen  bool // one is there that cannot be opened
}

type clientDatabase struct {
	name string
	open storage.Object
	id   storage.Token // of the token only what tells which file it is
}

// used says whether a process has one of the databases open for writing.
func (d *clientDatabases) used() storage.WriterState {
	d.look()
	used := storage.WritersNone
	if d.unseen {
		used = storage.WritersUnknown
	}
	for i := range d.list {
		state, err := d.list[i].open.Writers()
		if errors.Is(err, storage.ErrLeaseKept) {
			d.close() // and with it the lease
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

// look looks the names up, unless the directory is as it was then: no name came or went, or stands for another file.
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

// take adds a database, which is open already if it is among the known ones.
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
		d.readAt = 0 // it was replaced in between: look again next time
		return false
	}
	d.list = append(d.list, clientDatabase{name, obj, st.Token})
	return true
}

// close lets go of the databases.
func (d *clientDatabases) close() {
	for i := range d.list {
		_ = d.list[i].open.Close()
	}
	d.list = nil
}

// files are the files that a process has open which uses a database.
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
