// Package forks makes forks of other agents' sessions: new files in the agent's own form, with which
// the agent goes on (docs/design.md section 2, fork). It opens no existing file for writing.
package forks
