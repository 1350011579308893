// Package filelock is the lock of newer clients that the operating system keeps: a datagram socket with an abstract
// name, which is a hash of a path (docs/format.md, omp after 18.2.3). Who has bound it holds the lock; the kernel gives
// it back with the process. There are no such sockets but on Linux.
//
// [TryAcquire] takes the lock, for a moment, as clients do while they write. [Held] and [Holder] tell whether it is held,
// and by whom, and never bind a name: a client that is about to take its lock must not find it taken by somebody who
// only looks.
package filelock
