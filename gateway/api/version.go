package api

// Version is the version of the program, and so of its API: CHANGELOG.md says what each has. The
// commit that a program was built from is the builder's to say.
const Version = "0.1.0"
