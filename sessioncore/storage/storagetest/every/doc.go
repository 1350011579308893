// Package every runs a test against every implementation of storage.Storage that keeps files by itself.
package every
