package listing

import (
	"context"
	"errors"
	"runtime"
	"time"

	"sessionfs/sessioncore/storage"
)

const (
	// readersPerCPU is how many files are read at a time for each processor; on a cold disk readers mostly wait.
	readersPerCPU = 4
	// readBatch is how many files are announced at once.
	readBatch = 1024
	// batchesAtOnce is how many of these are read at a time: one is announced while the other is looked into.
	batchesAtOnce = 2
)

// readResult is the result of reading a prefix.
type readResult struct {
	token storage.Token
	at    int64
	info  *Info
}

// readPrefixes reads the prefixes of files, several at a time. A file that cannot be read is not listed, and the next refresh
// tries it again. When ctx is done, what was read stays.
func (l *Listing) readPrefixes(ctx context.Context, files []*sessionFile) error {
	results := make([]readResult, len(files))
	err := parallel((len(files)+readBatch-1)/readBatch, batchesAtOnce, func(b int) error {
		from := b * readBatch
		batch := files[from:min(len(files), from+readBatch)]
		l.announce(batch)
		return parallel(len(batch), readersPerCPU*runtime.GOMAXPROCS(0), func(i int) error {
			if ctx.Err() == nil {
				results[from+i] = l.readPrefix(batch[i])
			}
			return ctx.Err()
		})
	})
	for i, f := range files {
		if results[i].at != 0 {
			l.setInfo(f, results[i])
		}
	}
	return err
}

// announce tells the storage of files that are about to be read. What fails here fails again for who reads them.
func (l *Listing) announce(files []*sessionFile) {
	var err error
	defer storage.RecoverTo(&err)
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	l.store.Storage().ReadAhead(names)
}

func (l *Listing) readPrefix(f *sessionFile) readResult {
	at := time.Now().UnixNano()
	info, st, err := l.readInfo(f.name, f.info)
	if errors.Is(err, storage.ErrStale) { // it was replaced, or has another size than a compressed file says
		info, st, err = l.readInfo(f.name, f.info)
	}
	if err != nil {
		return readResult{at: at}
	}
	return readResult{st.Token, at, info}
}

// setInfo stores what was read of a file. If nothing changed, the sorted list and the keys stay.
func (l *Listing) setInfo(f *sessionFile, r readResult) {
	f.token, f.readAt = r.token, r.at
	old := f.info
	switch {
	case old == nil && r.info == nil, old != nil && r.info != nil && *old == *r.info:
		return
	case old == nil || r.info == nil || old.ID != r.info.ID || old.CWD != r.info.CWD || old.Parent != r.info.Parent || (old.flags|r.info.flags)&infoSearched != 0:
		l.keys = nil
	}
	f.info = r.info
	l.sessions = nil
}
