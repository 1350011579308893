package names

import "regexp"

// isUUID matches a UUID; the first group is its version.
var isUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-([0-9a-fA-F])[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// ShortID returns a beginning of an id that most likely no other one has: of a UUID 8 characters, or
// 18 where it begins with the time.
func ShortID(id string) string {
	version := isUUID.FindStringSubmatch(id)
	switch {
	case version == nil:
		return id
	case version[1] == "7":
		return id[:18]
	}
	return id[:8]
}
