// Package dirtest makes directories of session files for tests.
package dirtest
