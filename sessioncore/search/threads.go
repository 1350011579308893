package search

import (
	"os"
	"runtime"
	"sync"
)

// maxThreads is how many threads a search uses at most. More do not read memory faster.
const maxThreads = 8

// threads are those of all searches of the process. The Go runtime runs as many threads at once as there are processors,
// whatever their priority; so each one here is one more, and what else the process does never waits for a search. Where
// the priority of a thread can be lowered, which leaves it to the kernel to prefer everything else, a search may use all
// processors, otherwise half of them.
var threads struct {
	sync.Mutex
	running int
	usual   int // GOMAXPROCS without them
}

// onThreads calls f in several goroutines, each with a thread of its own, and returns when all have returned.
func onThreads(atMost int, f func()) {
	n := addThreads(atMost)
	defer removeThreads(n)
	var running sync.WaitGroup
	for range n {
		running.Go(func() { onOwnThread(f) })
	}
	running.Wait()
}

// onOwnThread calls f with the thread's priority lowered. The thread ends with the goroutine.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if isMainThread() { // which would not end
		done := make(chan struct{})
		go func() {
			defer close(done)
			onOwnThread(f)
		}()
		<-done
		runtime.UnlockOSThread()
		return
	}
	lowerPriority()
	f()
}

func addThreads(atMost int) int {
	threads.Lock()
	defer threads.Unlock()
	if threads.running == 0 {
		threads.usual = runtime.GOMAXPROCS(0)
	}
	n := threads.usual
	if !canLowerPriority {
		n = (n + 1) / 2
	}
	n = max(1, min(n, atMost, maxThreads))
	threads.running += n
	runtime.GOMAXPROCS(threads.usual + threads.running)
	return n
}

func removeThreads(n int) {
	threads.Lock()
	defer threads.Unlock()
	threads.running -= n
	if threads.running == 0 && os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS() // so that it goes on to follow what the container may use
		return
	}
	runtime.GOMAXPROCS(threads.usual + threads.running)
}
