// Package every runs a test against every implementation of storage.Storage.
package every
