// Package secrets finds keys, tokens and passwords in session files, by the rules of gitleaks, by
// more of our own (rules.toml) and by those of a file in the format of gitleaks. It reads decoded
// text, so escapes in JSON hide nothing. It returns only places and never a secret.
//
// Mask shows files without them: each byte of a secret reads as an asterisk, so that sizes, offsets
// and JSON stay valid, and everything made from the files, names included, lacks the secrets.
//
// gitleaks/gitleaks.toml is the unchanged file of gitleaks 8.30.1, with its licence beside it. To
// take a newer version, replace both files; TestRules names the rules that cannot be used. A rule
// in rules.toml replaces the rule of gitleaks with the same id.
package secrets
