// Package markdown makes other people's text harmless inside a document of ours: visible text that a terminal
// does not obey, code spans and fences that end where they should, and Markdown that keeps to itself, without
// raw HTML, link definitions or headings above ours.
//
// It never reads a file, and knows nothing of sessions.
package markdown
