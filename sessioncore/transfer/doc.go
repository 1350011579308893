// Package transfer brings sessions from one store into another: [Sources] finds them in files,
// directories, archives and bundles, [Importer] puts them into a store (docs/design.md section 2,
// Import), and [Bundler] writes the tar archives that Sources reads.
//
// It trusts no input. Paths lead through no link, a bundle is used once the hash of each of its
// files is known to be right, and no session is held in memory.
package transfer
