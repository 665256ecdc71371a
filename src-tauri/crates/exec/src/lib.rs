//! Commands: shells, a clean environment, process trees that really die, bounded output.
