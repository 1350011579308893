package storage

import "time"

// OverLaterAt is OverLater with another clock.
func OverLaterAt(front Files, find func() (Files, bool), now func() time.Time) Files {
	l := OverLater(front, find).(*later)
	l.now = now
	return l
}
