// Package childtest lets a test run its own test binary as another process.
package childtest
