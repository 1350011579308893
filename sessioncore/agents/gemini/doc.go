// Package gemini shows the sessions of Gemini CLI (docs/format.md, Gemini CLI).
package gemini
