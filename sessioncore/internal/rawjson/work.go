package rawjson

import "sync/atomic"

// counting says that scans count their bytes. Only tests set it; else a scan costs one load more.
var counting atomic.Bool

// scanned is the number of bytes that scans and decodings have passed over.
var scanned atomic.Int64

// CountWork counts from now on the bytes that scans and decodings pass over, each time that they do,
// and returns a function that returns their number so far. It is for tests of linear work.
func CountWork() func() int64 {
	counting.Store(true)
	before := scanned.Load()
	return func() int64 { return scanned.Load() - before }
}

// noteWork notes that a scan passed over n bytes.
func noteWork(n int) {
	if counting.Load() {
		scanned.Add(int64(n))
	}
}
