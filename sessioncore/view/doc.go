// Package view shows sessions to people: a branch as Markdown (docs/design.md, transcript.md), all
// branches as an HTML page, all sessions as a site of pages, and the difference of two branches.
// [Render] and [Screen.WriteDiff] have examples.
//
// A branch is a list of blocks, made entry by entry, and never held as a whole. A Screen has the
// colours of text on a terminal. No content of a session can change the structure of a document or
// the state of a terminal. The package opens and writes no file outside the directory of a SiteDir.
package view
