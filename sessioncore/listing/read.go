package listing

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
)

const (
	// readersPerCPU is how many files are read at a time for each processor; on a cold disk readers mostly wait.
	readersPerCPU = 4
	// readerFiles is the number of files for which one more reader is started.
	readerFiles = 16
	// readBatch is how many files are announced at once.
	readBatch = 1024
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
	var next sync.WaitGroup
	defer next.Wait()
	batches := slices.Collect(slices.Chunk(files, readBatch))
	for i, batch := range batches {
		if i == 0 {
			l.readAhead(batch)
		}
		next.Wait()
		if i+1 < len(batches) { // while this one is looked into
			next.Go(func() { l.readAhead(batches[i+1]) })
		}
		if err := l.readBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// readAhead announces files that are about to be read. What fails here fails again for who reads them.
func (l *Listing) readAhead(files []*sessionFile) {
	var err error
	defer storage.RecoverTo(&err)
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	l.store.Storage().ReadAhead(names)
}

func (l *Listing) readBatch(ctx context.Context, files []*sessionFile) error {
	results, root := make([]readResult, len(files)), l.store.Program()
	workers := min(1+len(files)/readerFiles, readersPerCPU*runtime.GOMAXPROCS(0))
	err := parallel(len(files), workers, func(i int) {
		if ctx.Err() == nil {
			results[i] = l.readOne(files[i], root)
		}
	})
	if err != nil {
		return err
	}
	for i, f := range files {
		if results[i].at != 0 {
			l.setInfo(f, results[i])
		}
	}
	return ctx.Err()
}

// parallel calls work for each number below n, on up to the given number of goroutines. A panic becomes an error: no
// file may crash the process.
func parallel(n, workers int, work func(i int)) error {
	var next atomic.Int64
	failed := make([]error, max(1, min(n, workers)))
	run := func(err *error) {
		defer storage.RecoverTo(err)
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			work(int(i))
		}
	}
	var wg sync.WaitGroup
	for w := 1; w < len(failed); w++ {
		wg.Go(func() { run(&failed[w]) })
	}
	run(&failed[0])
	wg.Wait()
	return errors.Join(failed...)
}

var prefixBuffers = sync.Pool{New: func() any { return new([prefixSize]byte) }}

func (l *Listing) readOne(f *sessionFile, root program.Program) readResult {
	buf := prefixBuffers.Get().(*[prefixSize]byte)
	defer prefixBuffers.Put(buf)
	r := readResult{at: time.Now().UnixNano()}
	info, st, err := l.readInfo(f.name, root, buf[:], f.info)
	if errors.Is(err, storage.ErrStale) { // it was replaced, or has another size than a compressed file says
		info, st, err = l.readInfo(f.name, root, buf[:], f.info)
	}
	if err == nil {
		info.cut()
		r.info, r.token = info, st.Token
	}
	return r
}

// setInfo stores what was read of a file. If nothing changed, the sorted list and the indexes stay.
func (l *Listing) setInfo(f *sessionFile, r readResult) {
	f.token, f.readAt = r.token, r.at
	old := f.info
	switch {
	case old == nil && r.info == nil, old != nil && r.info != nil && *old == *r.info:
		return
	case old == nil || r.info == nil || old.ID != r.info.ID || old.CWD != r.info.CWD || old.Parent != r.info.Parent || (old.flags|r.info.flags)&infoSearched != 0:
		l.lookup = lookup{}
	}
	f.info = r.info
	l.sessions = nil
	if f.info == nil || f.info.flags&infoSearched != 0 {
		l.unsettled[f] = true
	} else {
		delete(l.unsettled, f)
	}
}

// refreshFile reads one file if it has changed; the file may be gone.
func (l *Listing) refreshFile(ctx context.Context, f *sessionFile) error {
	st, err := l.store.Storage().Stat(f.name)
	switch {
	case err != nil && !unreachable(err):
		return err
	case err == nil && st.Kind == storage.KindFile && !f.differs(st.Token):
		return nil
	}
	return l.readPrefixes(ctx, []*sessionFile{f})
}
