// Package secrets finds keys and tokens in the text of session files, by the rules of gitleaks, by more of
// our own and by those of a file in its format, and says where they are.
// It reads decoded text, so escapes in JSON hide nothing, and it never returns what it found, only places.
//
// gitleaks/gitleaks.toml is the unchanged file of gitleaks 8.30.1, with its licence beside it. The program itself is
// not imported: it brings a framework for command lines, archives and settings, with more than 70 modules, and reads
// whole files. To take a newer version, replace both files; TestRules says if a rule of it cannot be used.
// rules.toml is our own; a rule in it takes the place of one of gitleaks with its id.
package secrets
