package replaytext

import (
	"encoding/xml"
	"fmt"
	"strings"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// Elements of a report in JUnit's XML format.
type (
	// junitSuite, junitCase and junitFailure are the elements of a report in JUnit's XML format.
	junitSuite struct {
		// XMLName makes the element a testsuite.
		XMLName xml.Name `xml:"testsuite"`
		// Name is the name of the suite.
		Name string `xml:"name,attr"`
		// Tests is the number of experiments.
		Tests int `xml:"tests,attr"`
		// Failures is the number of experiments that failed.
		Failures int `xml:"failures,attr"`
		// Cases are the experiments.
		Cases []junitCase `xml:"testcase"`
	}
	junitCase struct {
		// Class is the class name that JUnit reports require; always the same.
		Class string `xml:"classname,attr"`
		// Name is the file of the experiment, with its description if it has one.
		Name string `xml:"name,attr"`
		// Seconds is how long the experiment took, in seconds with three decimals.
		Seconds string `xml:"time,attr"`
		// Failure is why the experiment failed; nil if it succeeded.
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		// Message is the first expectation that failed.
		Message string `xml:"message,attr"`
		// Text lists the expectations that failed, one per line.
		Text string `xml:",chardata"`
	}
)

// junit prints the results of experiments in JUnit's XML format.
func junit(out *term.Output, lines []*contract.Experiment) error {
	report := junitSuite{Name: "unwire replay suite", Tests: len(lines)}
	for _, l := range lines {
		c := junitCase{Class: "unwire.replay", Name: strings.TrimSuffix(l.File+": "+l.About, ": "), Seconds: fmt.Sprintf("%.3f", l.Duration/1000)}
		if !l.OK {
			report.Failures++
			c.Failure = &junitFailure{Message: l.Failed[0], Text: strings.Join(l.Failed, "\n")}
		}
		report.Cases = append(report.Cases, c)
	}
	b, err := xml.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s%s\n", xml.Header, b)
	return err
}
