package storage

import "time"

const (
	// clockTick is the longest tick of the clocks that kernels take file times from. Before Linux 6.13, a file's
	// time is that of the last timer interrupt, of which there are 100 to 1,000 per second.
	clockTick = 20 * time.Millisecond
	// coarseTick is the same for file systems that store whole or even seconds (old ext4, FAT).
	coarseTick = 2 * time.Second
)

// Settling returns for how long after at a change to the file may leave the token unchanged, because the file's
// clock has not ticked. It returns 0 if the token shows every change after at. A token taken within that time does
// not prove that the content read then is still there.
//
// Settling uses the time of the last change of the inode, which programs cannot set.
func (t Token) Settling(at time.Time) time.Duration {
	tick := clockTick
	if t.Changed%int64(time.Second) == 0 {
		tick = coarseTick
	}
	age := time.Duration(at.UnixNano() - t.Changed)
	return max(0, min(tick, tick-age))
}

// Racy reports whether content read at readAt, in ns since the epoch, may have changed without a change of the
// token.
func (t Token) Racy(readAt int64) bool { return t.Settling(time.Unix(0, readAt)) > 0 }
