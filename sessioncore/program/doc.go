// Package program determines the agent of an agent directory or a session file, omp or pi, whose
// formats are the same (docs/format.md, Whose session it is). It reads names and single values, and
// indexes nothing.
package program
