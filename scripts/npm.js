#!/usr/bin/env node
// Starts the program of this system, which npm has installed as an optional dependency.
"use strict";
const { spawn } = require("node:child_process");

const name = `@OWNER@/sessionfs-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/sessionfs`);
} catch {
  console.error(`sessionfs: there is no program for ${process.platform} ${process.arch}: ${name} is not installed`);
  process.exit(2);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", error => {
  console.error(`sessionfs: ${program} cannot be started: ${error.message}`);
  process.exit(2);
});
// A terminal sends its signals to both; those for this process alone are passed on. It ends as the program does.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("exit", (status, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(status);
  }
});
