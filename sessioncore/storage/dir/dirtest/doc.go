// Package dirtest makes storages in temporary directories for tests of other packages.
package dirtest
