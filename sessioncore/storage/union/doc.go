// Package union shows several stores side by side, each below a name of its own: the sessions of
// all agents of a user.
package union
