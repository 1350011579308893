// Package mountopts turns a command line, as a person or mount(8) writes it, into one [Options]
// struct.
//
// [Parse] reads the whole command line, and [Usage] is the help. Both are made
// from one table of flags and one of options, so that the help names all that Parse accepts.
//
// It is pure, and so is tested by tables: it never reads a file, the environment or a clock, and
// never prints.
package mountopts
