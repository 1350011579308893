// Package markdowntest judges documents for tests, with a CommonMark parser that shares no code with ours.
package markdowntest
