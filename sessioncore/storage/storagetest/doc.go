// Package storagetest has what tests of storages share, whatever the implementation.
package storagetest
