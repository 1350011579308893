// Package kernel is the door of FUSE: it answers the requests of the kernel from the nodes of a
// mount. It decides what the nodes do not know of: inodes and their numbers, what the kernel may
// remember and for how long, which names of a listing come with their attributes, and when the
// kernel is told to forget.
package kernel
