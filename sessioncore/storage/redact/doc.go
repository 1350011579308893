// Package redact masks the secrets in session files: each byte of a secret reads as an asterisk, so
// that sizes, offsets and JSON stay valid, and everything made from the files, names included,
// lacks the secrets. It hides symbolic links and names in which a rule finds a secret. Only session
// files can be opened, and nothing can be written.
package redact
