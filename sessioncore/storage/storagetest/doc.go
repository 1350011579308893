// Package storagetest has helpers for tests of storages, independent of the implementation.
package storagetest
