// Package redact shows session files with the secrets in them masked: each byte of a secret reads as an asterisk, so
// that sizes, offsets and JSON stay what they are. Everything that is made from the files, names included, is thus made
// without them. A name in which a rule finds a secret is not there, nor is a symbolic link; a file that is no session
// file cannot be opened. Nothing can be written.
package redact
