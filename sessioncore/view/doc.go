// Package view shows sessions to people: a branch as Markdown (docs/design.md, transcript.md), all
// branches as an HTML page, all sessions as a site of pages, and the difference of two branches.
//
//	doc, err := view.Render(ctx, snap, leaf, view.Links{Entries: "entries/", Blobs: "../blobs/"})
//	err = view.Page(ctx, out, view.Subject{Session: snap, End: leaf, Blobs: blobs})
//	differs, err := screen.WriteDiff(ctx, names, [2]view.ShownBranch{{snap, leaf}, {snap, other}}, false)
//
// A branch is a list of blocks, made entry by entry, and never held as a whole. A Screen has the
// colours of text on a terminal. No content of a session can change the structure of a document or
// the state of a terminal. The package opens and writes no file outside the directory of a SiteDir.
package view
