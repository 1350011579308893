// Package kimi shows the sessions of Kimi Code (docs/format-kimi.md).
package kimi
