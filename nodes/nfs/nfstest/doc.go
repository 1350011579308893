// Package nfstest is a client of NFSv3, for tests.
package nfstest
