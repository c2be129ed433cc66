// Package report writes what a night of tuning found: Markdown for a person, CSV
// for a spreadsheet, and one HTML file that needs no network. Every figure that
// is compared comes with its interval, every trial that was not tried with its
// reason, and every failure with its cause.
package report
