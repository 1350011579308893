// Package jsonl reads a session file as a stream of values. It cuts the file into chunks of whole
// lines, determines which lines are a value by themselves and which begin a value that spans lines,
// and returns where reading can continue when the file has grown (docs/format.md, Loading).
//
// It never decodes a value, and holds no more of the file than the current chunks.
package jsonl
