// Package clients finds out whether a program that does not follow the client's lock, a live client, has a session open
// (docs/design.md section 4): by the breadcrumbs of terminals together with the agent's databases ([Clients]), and by
// the leases of newer clients ([Leases]).
//
// It only looks: it never opens a session file, takes no lock, and binds no socket. Where it cannot see it says that
// there is none; package writer looks at the session's file as well.
package clients
