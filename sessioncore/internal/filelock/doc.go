// Package filelock is the lock of newer clients in the kernel: a datagram socket bound to an
// abstract name, which is a hash of a path (docs/format.md, omp after 18.2.3). The kernel releases
// it when its process ends. Only Linux has such sockets.
//
// [TryAcquire] takes the lock for a moment, as clients do while they write. [Held] and [Holder]
// only look and never bind the name: no client finds its lock taken by an observer.
package filelock
