// Package gemini shows the sessions of Gemini CLI (docs/format-gemini.md).
package gemini
