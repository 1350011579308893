// Package kernel is the door of FUSE: it answers the kernel's requests from the nodes of a mount.
// It decides on inodes and their numbers, on the kernel's caches and their times, on the names of a
// listing that come with attributes, and on notifications to forget.
package kernel
