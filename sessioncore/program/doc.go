// Package program tells which agent an agent directory or a session file belongs to, among those that write the same
// format: omp, and pi, from which it comes (docs/format.md, Whose session it is). It reads names and single values;
// it indexes nothing.
package program
