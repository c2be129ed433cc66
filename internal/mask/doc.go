// Package mask takes secrets out of everything that sglaunch writes: journal,
// reports, status, evidence and its own lines.
//
// A secret is known by its name (an option, a variable, a key in printed
// settings) or by its form (a Hugging Face token, a bearer header, a password
// in a URL). Masking twice changes nothing more. The raw attempt log is the one
// thing that is never masked.
package mask
