// Package transcript renders a branch of a session as Markdown for a person (docs/design.md, transcript.md).
//
//	doc, err := transcript.Render(snap, leaf, transcript.Links{Entries: "entries/", Blobs: "../blobs/"})
//
// Only the sizes of what is rendered are kept; the text is made when it is read. Whatever a session says, it changes
// neither the structure of the document nor the state of a terminal. The package never reads a blob, and never writes.
package transcript
