// Package spill keeps texts that may be too long for memory: in memory as far as a budget has room, else in files without a
// name, so that only this process can open them and none is left behind, in the directory for temporary files.
package spill
