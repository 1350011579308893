package search

import (
	"context"
	"sync"

	"sessionfs/sessioncore/storage"
)

// tableScans are the scans of tables in one search. The rows of a session are read for it alone, until so many
// were that a scan of the rows of all sessions takes less time. It is safe for concurrent use.
type tableScans struct {
	mu     sync.Mutex // guards tables; held during a scan
	tables map[storage.Table]*tableScan
}

// tableScan is the scan of a table for a needle.
type tableScan struct {
	asked  int // number of sessions
	needle *Needle
	lacks  func(storage.Object) bool // nil before the scan
}

// fewRows is the number of sessions that are read before a scan of all. A scan of 10,000 takes as long as 2,000
// sessions, and a search for a usual word ends after few.
const fewRows = 500

// newTableScans returns the scans of a search before its first one.
func newTableScans() *tableScans { return &tableScans{tables: map[storage.Table]*tableScan{}} }

// lacks reports whether a scan shows that the raw file of a session has no needle. It is false if there was no scan:
// the file is none of a table, or too few were asked for. t may be nil, and then never scans.
func (t *tableScans) lacks(ctx context.Context, raw storage.Object, needle *Needle) (bool, error) {
	tabled, isTabled := raw.(storage.TabledObject)
	if t == nil || !isTabled || !needle.isInRaw() {
		return false, nil
	}
	table := tabled.Table()
	if table == nil {
		return false, nil
	}
	err := storage.LockUntil(ctx, &t.mu)
	if err != nil {
		return false, err
	}
	defer t.mu.Unlock()
	scan := t.tables[table]
	if scan == nil {
		scan = &tableScan{needle: needle}
		t.tables[table] = scan
	}
	scan.asked++
	if scan.asked == fewRows { // once: after an error the rows are read one by one
		scan.lacks, err = table.Lacking(ctx, needle.inRaw().isInPiece)
	}
	isScanned := scan.lacks != nil && scan.needle == needle // other sessions may have needles of their own
	if err != nil || !isScanned {
		return false, err
	}
	return scan.lacks(raw), nil
}

// isInPiece reports whether a piece of a file has the needle or an alternative, as scanner.has does of a file.
func (n *Needle) isInPiece(text []byte) bool {
	for alternative := n; alternative != nil; alternative = alternative.or {
		found, _ := alternative.scanBuffer(text, 0, 0, int64(len(text)), nil)
		if len(found) > 0 {
			return true
		}
	}
	return false
}
