package storage

import (
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Parallel calls work for each number below n, on as many goroutines as workers, and returns the first
// error, which may be a panic. After an error a goroutine ends, and the others go on.
func Parallel(n, workers int, work func(i int) error) error {
	var running errgroup.Group
	var begun atomic.Int64
	for range min(n, workers) {
		running.Go(func() (err error) {
			defer RecoverTo(&err)
			for err == nil {
				i := begun.Add(1) - 1
				if i >= int64(n) {
					return nil
				}
				err = work(int(i))
			}
			return err
		})
	}
	return running.Wait()
}
