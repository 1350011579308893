// Package search finds entries in all sessions of a storage by reading their files (docs/design.md
// section 5). [Searcher.Search] has an example.
//
// The raw bytes of every file are scanned for one word of the query, in all its JSON spellings;
// matches are decoded and checked. There is no index on disk, and the cache of results only saves
// reading unchanged files. The package does not know the mount, and never writes.
package search
