// Package clienttest imitates clients for tests: agent directories, terminals, and processes that hold files as a client
// does.
package clienttest
