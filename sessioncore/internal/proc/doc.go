// Package proc looks at other processes: which of them has a file open for writing, as /proc
// tells, and which holds a lock of newer clients.
//
// Such a lock is a datagram socket bound to an abstract name, which is a hash of a path
// (docs/format.md, omp after 18.2.3). The kernel releases it when its process ends. Only Linux has
// such sockets. [TryLock] takes the lock for a moment, as clients do while they write. [IsLocked]
// and [LockHolder] only look and never bind the name: no client finds its lock taken by an observer.
package proc
