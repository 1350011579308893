// Package claudetest makes directories of Claude Code whose bill is known, for tests and for the benchmark.
package claudetest
