// Package markdowntest checks documents in tests, with a CommonMark parser that shares no code with ours.
package markdowntest
