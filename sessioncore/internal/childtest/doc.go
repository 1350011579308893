// Package childtest lets a test binary be another process of its own test.
package childtest
