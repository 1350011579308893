// Package layout computes names of the mount and their targets: the directories of sessions, the
// stretches in which tree/ nests, the names in a branch's path/, the entry of a target of leaf, and
// the names of SOURCE. It knows neither FUSE nor inodes. Package sessioncore turns ids into file
// names, as it writes such names into documents.
package layout
