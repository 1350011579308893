// Package layout computes names of the mount and where they lead: the directories in which sessions are found, the
// stretches in which tree/ nests, the names in a branch's path/, the entry that a target of leaf names, and what SOURCE's
// names stand for. It knows neither FUSE nor inodes. How ids become file names is in package sessioncore, which writes
// such names into documents.
package layout
