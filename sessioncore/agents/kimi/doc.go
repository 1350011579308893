// Package kimi shows the sessions of Kimi Code (docs/format.md, Kimi Code).
package kimi
