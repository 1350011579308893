// Package agents is the registry of the coding agents that keep sessions in a form of their own. An agent's package registers
// one value of Agent in its init; package all imports all of them. Everything above asks the registry, and names no agent.
package agents
