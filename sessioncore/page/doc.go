// Package page makes one self-contained HTML page of a transcript: no scripts, nothing that is loaded from elsewhere, its
// images inside as data.
//
//	head, parts, err := transcript.Parts(ctx, snapshot, leaf, links)
//	err = page.Write(w, head, parts, blobs)
//
// The parts are rendered one by one, so memory does not grow with them, but for a table of contents with a line for each prompt.
// Their Markdown holds text of others: raw HTML is shown as text, an image that is not in the blob store becomes a link, and
// links lead to the web or nowhere.
//
// It never opens a file itself, and knows nothing of sessions.
package page
