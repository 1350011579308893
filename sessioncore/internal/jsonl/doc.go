// Package jsonl reads a session file as a stream of values: it cuts the file into chunks of whole lines, tells
// which lines are a value by themselves and which begin one that runs on, and says where reading can go on when
// the file has grown (docs/format.md, Loading).
//
// It never decodes a value, and holds no more of the file than the chunks at hand.
package jsonl
