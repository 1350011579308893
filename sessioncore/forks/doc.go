// Package forks makes forks of other agents' sessions: new files in the agent's own form, with which
// the agent goes on (docs/design.md section 2, fork). It also hands a conversation of one agent over to
// another (docs/format.md, Handovers to another agent). It opens no existing file for writing.
package forks
