// Package wyhash is the hash of newer clients' runtime, Bun.hash.wyhash: final version 4 of wyhash.
package wyhash
