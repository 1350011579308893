// Package qwen shows the sessions of Qwen Code (docs/format-qwen.md).
package qwen
