// Package nodes holds the inodes of a mount: the directories of SOURCE as they are, the directory that
// shows each session, the ways to find sessions, and the prompt history. Nodes translate between the
// kernel and package sessioncore and hold no content but what an open file shows.
//
// Layout has a row for everything that can be seen, with the file that makes it.
package nodes
