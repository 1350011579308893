package names

import "regexp"

// isUUID matches a UUID; the first group is its version.
var isUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-([0-9a-fA-F])[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// ShortID returns a beginning of an id that most likely no other one has: of a UUID 8 characters, or
// 18 of one of version 7, which begins with the time. Other ids are returned whole.
func ShortID(id string) string {
	match := isUUID.FindStringSubmatch(id)
	if match == nil {
		return id
	}
	version := match[1]
	if version == "7" {
		return id[:18]
	}
	return id[:8]
}
