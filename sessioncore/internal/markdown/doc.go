// Package markdown makes other people's text harmless inside a document of ours: visible text that a terminal
// does not obey, code spans and fences that end where they should, and Markdown that keeps to itself, without
// raw HTML, link definitions or headings above ours.
//
// Markdown is copied by rules for lines and for code spans that escape a little more than is needed where they cannot
// tell. That it keeps to itself is judged by the tests, with parsers that share no code with it.
//
// It never reads a file, and knows nothing of sessions.
package markdown
