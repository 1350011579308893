// Package agents is the registry of coding agents with session formats of their own. An agent's
// package registers one Agent in its init; package all imports all of them. Everything above uses
// the registry and names no agent.
package agents
