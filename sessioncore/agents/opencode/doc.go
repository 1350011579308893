// Package opencode shows the sessions of OpenCode, and of Kilo Code and MiMo Code, which have the same
// database (docs/format.md, OpenCode). A session is made of the rows of a database, or of the documents of
// clients before 1.2, as a text of one JSON object a line; the converter reads that text.
package opencode
