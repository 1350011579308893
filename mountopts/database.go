package mountopts

import (
	"errors"
	"net/url"
	"strings"
)

// IsDatabase reports whether SOURCE is the URL of a database. A directory of such a name is given as ./postgres:...
func IsDatabase(source string) bool {
	return strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://")
}

// BlobsInDatabase is the value of Options.Blobs that means a table beside the sessions. A directory of that name is given as
// ./postgres.
const BlobsInDatabase = "postgres"

// CheckSource refuses what is not possible with the kind of SOURCE. No error has the text of a URL with a password.
func (o Options) CheckSource() error {
	if !IsDatabase(o.Source) {
		if o.Blobs != "" {
			return errors.New("-o blobs= is for a database as SOURCE: an agent directory has its own blobs")
		}
		return nil
	}
	u, err := url.Parse(o.Source)
	if err != nil {
		return errors.New("SOURCE begins like the URL of a database, but is none: postgres://user@host/database")
	}
	if _, secret := u.User.Password(); secret || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return errors.New("SOURCE has a password, which every user of this machine can see in the list of processes: leave it out, and put it into ~/.pgpass, PGPASSWORD or a service file")
	}
	return nil
}
