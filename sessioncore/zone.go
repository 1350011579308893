package sessioncore

import (
	"os"
	"strings"
	"sync"
	"time"
)

// ZoneName returns the name of the local time zone, such as Europe/Berlin. Where the system has a
// zone without a name, it is the abbreviation that holds now.
var ZoneName = sync.OnceValue(func() string {
	name := time.Local.String()
	if name != "Local" {
		return name
	}
	file, err := os.Readlink("/etc/localtime")
	if err == nil {
		_, named, ok := strings.Cut(file, "zoneinfo/")
		if ok {
			return strings.TrimPrefix(named, "Etc/") // of Etc/UTC
		}
	}
	name, _ = time.Now().Zone()
	return name
})
