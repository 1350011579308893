package names

import (
	"fmt"

	"sessionfs/sessioncore/internal/wyhash"
)

// maxLeaseName is the maximum length of an id that is the name of its lease.
const maxLeaseName = 128

// LeaseName returns the name of the lease on the session with an id (docs/format.md, omp after 18.2.3): the id itself, or a
// hash of one that could be more than a file name. id is WTF-8.
func LeaseName(id string) string {
	if isLeaseName(id) {
		return id
	}
	return fmt.Sprintf("h-%016x", wyhash.Sum(0, TextUTF8(id)))
}

func isLeaseName(id string) bool {
	if id == "" || len(id) > maxLeaseName {
		return false
	}
	for _, b := range []byte(id) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return true
}
