// Package transcript renders a branch of a session as Markdown for people (docs/design.md, transcript.md).
//
//	doc, err := transcript.Render(snap, leaf, transcript.Links{Entries: "entries/", Blobs: "../blobs/"})
//
// Only the sizes of rendered entries are kept; the text is rendered when it is read. No content of a session can
// change the structure of the document or the state of a terminal. The package never reads a blob, and never writes.
package transcript
