// Package blame holds the tests of the pages of blame and of report in a real
// browser, headless Chromium. They are skipped where there is none; Debian has it as the package
// chromium. With go test -artifacts they leave screenshots.
package blame
