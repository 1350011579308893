// Package markdown makes other people's text harmless inside a document of ours: visible text that
// has no effect on a terminal, code spans and fences that end where they should, and Markdown that
// affects nothing outside it, without raw HTML, link definitions or headings above ours.
//
// Markdown is copied by rules for lines and for code spans, which escape a little more than
// necessary in cases of doubt. The tests check the result with parsers that share no code with this
// package.
//
// It never reads a file, and knows nothing of sessions.
package markdown
