// Package clienttest imitates clients for tests: agent directories, terminals, and processes that hold files open
// as a client does.
package clienttest
