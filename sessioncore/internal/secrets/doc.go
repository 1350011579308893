// Package secrets finds keys and tokens in the text of session files, by the rules of gitleaks, and says where they are.
// It reads decoded text, so escapes in JSON hide nothing, and it never returns what it found, only places.
//
// gitleaks/gitleaks.toml is the unchanged file of gitleaks 8.30.1, with its licence beside it. The program itself is
// not imported: it brings a framework for command lines, archives and settings, with more than 70 modules, and reads
// whole files. To take a newer version, replace both files; TestRules says if a rule of it cannot be used.
package secrets
