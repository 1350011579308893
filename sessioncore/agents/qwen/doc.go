// Package qwen shows the sessions of Qwen Code (docs/format.md, Qwen Code).
package qwen
