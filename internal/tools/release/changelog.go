package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// changelogSection is a version and its date, and what is under this heading.
type changelogSection struct {
	version string // empty for Unreleased
	date    string
	body    string
}

var releaseHeading = regexp.MustCompile(`^(v\S+) - (\S+)$`)

// splitChangelog returns what stands before the sections of CHANGELOG.md, and the sections. The first is that of
// unreleased changes; the others are versions with dates, the newest first.
func splitChangelog(text string) (preamble string, sections []changelogSection, err error) {
	parts := strings.Split("\n"+text, "\n## ")
	preamble = strings.TrimPrefix(parts[0], "\n")
	for _, part := range parts[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		s := changelogSection{body: strings.TrimSpace(body)}
		if heading != "Unreleased" {
			match := releaseHeading.FindStringSubmatch(heading)
			if match == nil {
				return "", nil, fmt.Errorf("CHANGELOG.md: %q: expected Unreleased, or a version and its date, "+
					"as in v1.2.3 - 2006-01-02", heading)
			}
			s.version, s.date = match[1], match[2]
			if _, err := time.Parse(time.DateOnly, s.date); err != nil {
				return "", nil, fmt.Errorf("CHANGELOG.md: %s: %w", s.version, err)
			}
		}
		switch last := len(sections) - 1; {
		case last < 0 && s.version != "":
			return "", nil, fmt.Errorf("CHANGELOG.md: %s: expected Unreleased as the first section", s.version)
		case last >= 0 && !semver.IsValid(s.version):
			return "", nil, fmt.Errorf("CHANGELOG.md: %q: is no version", heading)
		case last >= 1 && s.date > sections[last].date:
			return "", nil, fmt.Errorf("CHANGELOG.md: %s is dated after %s, which comes before it",
				s.version, sections[last].version)
		}
		sections = append(sections, s)
	}
	if len(sections) == 0 {
		return "", nil, fmt.Errorf("CHANGELOG.md: has no section Unreleased")
	}
	return preamble, sections, nil
}

func joinChangelog(preamble string, sections []changelogSection) string {
	text := strings.TrimRight(preamble, "\n") + "\n"
	for _, s := range sections {
		heading := "Unreleased"
		if s.version != "" {
			heading = s.version + " - " + s.date
		}
		text += "\n## " + heading + "\n"
		if s.body != "" {
			text += "\n" + s.body + "\n"
		}
	}
	return text
}

func (w *workspace) changelog() (preamble string, sections []changelogSection, err error) {
	data, err := os.ReadFile(filepath.Join(w.root, "CHANGELOG.md"))
	if err != nil {
		return "", nil, err
	}
	return splitChangelog(string(data))
}

// dateChangelog makes the unreleased changes those of a version.
func (w *workspace) dateChangelog(version string, now time.Time) error {
	preamble, sections, err := w.changelog()
	if err != nil {
		return err
	}
	if sections[0].body == "" {
		return fmt.Errorf("CHANGELOG.md: has nothing under Unreleased that %s could change", version)
	}
	sections[0].version, sections[0].date = version, now.Format(time.DateOnly)
	sections = append([]changelogSection{{}}, sections...)
	text := joinChangelog(preamble, sections)
	if _, _, err := splitChangelog(text); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.root, "CHANGELOG.md"), []byte(text), 0o666)
}

// checkChangelog requires that the newest section is that of a version, and that nothing is unreleased.
func (w *workspace) checkChangelog(version string) error {
	_, sections, err := w.changelog()
	switch {
	case err != nil:
		return err
	case sections[0].body != "":
		return fmt.Errorf("CHANGELOG.md: has changes under Unreleased, expected them under %s", version)
	case len(sections) < 2 || sections[1].version != version:
		return fmt.Errorf("CHANGELOG.md: has no section %s below Unreleased", version)
	case sections[1].body == "":
		return fmt.Errorf("CHANGELOG.md: has nothing under %s", version)
	}
	return nil
}
