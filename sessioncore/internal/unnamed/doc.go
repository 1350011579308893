// Package unnamed makes files for what is too large for memory: without a name, so that only this process can open them and
// none is left behind, in the directory for temporary files.
package unnamed
