// Package page makes one self-contained HTML page of a transcript: no scripts, nothing that is loaded from elsewhere, its
// images inside as data.
//
//	err := page.Write(w, transcript, blobs)
//
// The transcript is read and rendered turn by turn, so memory does not grow with it. Its Markdown holds text of others:
// raw HTML is shown as text, an image that is not in the blob store becomes a link, and links lead to the web or nowhere.
//
// It never opens a file itself, and knows nothing of sessions.
package page
