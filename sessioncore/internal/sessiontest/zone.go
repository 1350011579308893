package sessiontest

import "time"

// init sets the zone of the times in golden files.
func init() { time.Local = time.UTC }
