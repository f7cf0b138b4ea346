package api

// Version is the version of the program, and so of its API: see CHANGELOG.md. The builder sets the
// commit.
const Version = "0.1.0"
