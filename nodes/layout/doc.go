// Package layout computes names of the mount and where they lead: the stretches in which tree/ nests and the names in
// a branch's path/. It knows neither FUSE nor inodes. How ids become file names is in package sessioncore, which
// writes such names into documents.
package layout
