package listing

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore/storage"
)

const (
	// readersPerCPU is how many files are read at a time for each processor: a cold disk is waited for
	// most of the time.
	readersPerCPU = 4
	// readerFiles is how many files are worth another reader.
	readerFiles = 16
)

// readResult is what reading a prefix gave.
type readResult struct {
	token storage.Token
	at    int64
	info  *Info
}

// read reads the prefixes of files, several at a time. One that cannot be read is not listed, and is
// tried again at the next look.
func (l *Listing) read(files []*sessionFile) error {
	results := make([]readResult, len(files))
	workers := min(1+len(files)/readerFiles, readersPerCPU*runtime.GOMAXPROCS(0))
	if err := parallel(len(files), workers, func(i int) { results[i] = l.readOne(files[i].name) }); err != nil {
		return err
	}
	for i, f := range files {
		l.install(f, results[i])
	}
	return nil
}

// parallel calls work for each number below n, from several goroutines where there is more than one
// worker. A panic is an error: no file may take the process down.
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

func (l *Listing) readOne(name string) readResult {
	buf := prefixBuffers.Get().(*[prefixSize]byte)
	defer prefixBuffers.Put(buf)
	r := readResult{at: time.Now().UnixNano()}
	info, st, err := readInfo(l.store.Storage(), name, buf[:])
	if err == nil {
		r.info, r.token = info, st.Token
	}
	return r
}

// install notes what was read of a file. What is the same stays the same, so that nothing is sorted or
// indexed anew for it.
func (l *Listing) install(f *sessionFile, r readResult) {
	f.token, f.readAt = r.token, r.at
	old := f.info
	if r.info != nil && (old != nil && old.flags&infoCut != 0 || l.long-old.long()+r.info.long() > maxKeptLong) {
		r.info.cut()
	}
	switch {
	case old == nil && r.info == nil, old != nil && r.info != nil && *old == *r.info:
		return
	case old == nil || r.info == nil || old.ID != r.info.ID || old.CWD != r.info.CWD || (old.flags|r.info.flags)&infoSearched != 0:
		l.lookup = lookup{}
	}
	l.long += r.info.long() - old.long()
	f.info = r.info
	l.sessions = nil
	if f.info == nil || f.info.flags&infoSearched != 0 {
		l.unsettled[f] = true
	} else {
		delete(l.unsettled, f)
	}
}

// again looks at one file anew, which may be gone.
func (l *Listing) again(f *sessionFile) error {
	st, err := l.store.Storage().Stat(f.name)
	switch {
	case err != nil && !unreachable(err):
		return err
	case err != nil || st.Kind != storage.KindFile:
		l.install(f, readResult{})
		return nil
	case !f.differs(st.Token):
		return nil
	}
	return l.read([]*sessionFile{f})
}
