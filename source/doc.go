// Package source tells which SOURCE a command line means, and which paths and sessions of it the
// arguments mean: [Find] goes through the candidates in order, and [Place.OpenTree] opens the one
// that is found.
package source
