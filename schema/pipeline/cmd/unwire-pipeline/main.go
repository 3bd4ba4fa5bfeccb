// Unwire-pipeline infers definitions from many captures on Apache Beam. See the package unwire/schema/pipeline and its
// README.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"
	// These register runners.
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/flink"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/spark"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"

	"unwire/captures/safetext"
	"unwire/replay/outbound"
	"unwire/schema"
	"unwire/schema/pipeline"
)

const usage = `unwire-pipeline infers definitions from many captures on Apache Beam.

usage: unwire-pipeline --segments GLOB --output DIR [--runner prism] [--proto DIR]

examples:
  unwire-pipeline --segments 'segments/**' --output results
  unwire-pipeline --segments s3://bucket/segments/ --output s3://bucket/results --live --allow-host s3.eu-west-1.amazonaws.com
  unwire-pipeline --segments 'day/*.uwc' --output results --proto proto/

The output has evidence/KEY.pb, proto/KEY/, findings.parquet, coverage.parquet, drift.jsonl
and manifest.json. A later run with the same output reads only new segments. To make
definitions from all evidence, run 'unwire schema infer -o all/ DIR/evidence/*.pb'.

exit status: 0 ok, 1 some data could not be read or inferred (see "problems" in
manifest.json), 2 usage, 3 failure, 130 interrupted

flags of unwire-pipeline, before those of Beam:
`

// ours are the flags of this program, which --help lists; Beam has 60 more.
var ours = []string{"segments", "output", "runner", "proto", "store-endpoint", "store-region", "store-encryption", "live", "allow-host", "store-ca"}

// main runs the program and exits with its status.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// A list is a command-line flag that can be given several times, each with values separated by commas.
type list []string

// String returns the values separated by commas.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set adds the values in v.
func (l *list) Set(v string) error { *l = append(*l, strings.Split(v, ",")...); return nil }

// run is the program; it returns the exit status. On workers, too, Beam reads its flags from the package flag.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o pipeline.Options
	var segments, hosts list
	proto := flag.String("proto", "", "check segments with the definitions in this `folder` or descriptor set")
	flag.Var(&segments, "segments", "segments to read: a `GLOB` of files or s3://BUCKET/PREFIX/**; can be repeated")
	flag.StringVar(&o.Output, "output", "", "`folder` or s3://BUCKET/PREFIX of the results")
	flag.StringVar(&o.Access.Endpoint, "store-endpoint", "", "`URL` of the S3 service (default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or that of Amazon)")
	flag.StringVar(&o.Access.Region, "store-region", "", "`region` of buckets (default: AWS_REGION, or us-east-1)")
	flag.StringVar(&o.Access.Encryption, "store-encryption", "", "ask the store to encrypt results: AES256, aws:kms or aws:kms:KEY")
	flag.BoolVar(&o.Access.Live, "live", false, "allow requests to the other machines that --allow-host names")
	flag.Var(&hosts, "allow-host", "a `host` to which --live allows requests; can be repeated")
	flag.StringVar(&o.Access.CA, "store-ca", "", "PEM `file` of further authorities for HTTPS")

	// ContinueOnError lets this function choose the exit code.
	flag.CommandLine.Init("unwire-pipeline", flag.ContinueOnError)
	flag.CommandLine.SetOutput(stderr)
	flag.Usage = func() { help(stderr) }
	if err := flag.CommandLine.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	o.Access.AllowHosts = hosts
	o.Segments = segments

	// Beam reports each step.
	if log.LogLevel == "info" {
		log.LogLevel = "warn"
	}
	pipeline.Register()
	beam.Init() // on a worker, this does the work and does not return

	// Only the process that starts the pipeline gets here, so only it checks the arguments.
	switch {
	case flag.NArg() > 0:
		return fail(stderr, 2, fmt.Errorf("unexpected argument %q", flag.Arg(0)), "quote patterns, so that the shell does not expand them")
	case len(o.Segments) == 0 || o.Output == "":
		return fail(stderr, 2, errors.New("--segments and --output are required"), "'unwire-pipeline --help' lists the flags")
	case o.Access.Live && len(hosts) == 0:
		return fail(stderr, 2, errors.New("--live requires --allow-host HOST, which names an allowed host"), "")
	}

	// A store that may not be contacted is reported before definitions are loaded.
	for _, url := range append([]string{o.Output}, o.Segments...) {
		if err := o.Access.Check(url); err != nil {
			return fail(stderr, 2, err, "to use a store on another machine, use --live and --allow-host")
		}
	}
	if *proto != "" {
		var err error
		if o.Definitions, err = schema.LoadDefinitions(ctx, *proto); err != nil {
			return fail(stderr, 3, err, "")
		}
	}
	report, err := pipeline.Run(ctx, cmp.Or(*runners.Runner, "prism"), o)
	switch {
	// The exit codes are those of unwire.
	case ctx.Err() != nil:
		return fail(stderr, 130, errors.New("interrupted: the output is unchanged"), "run the command again")
	case errors.Is(err, outbound.ErrRefused):
		return fail(stderr, 2, err, "to use a store on another machine, use --live and --allow-host")
	case err != nil:
		return fail(stderr, 3, err, "")
	}
	return summary(stdout, stderr, o.Output, report)
}

// summary prints what the output folder contains after the run. It returns the exit status.
func summary(stdout, stderr io.Writer, output string, r *pipeline.Report) int {
	m := r.Manifest
	fmt.Fprintf(stdout, "%s listed, %d read, %d in %s\n", counted(r.Listed, "segment"), r.Read, len(m.Segments), output)
	fmt.Fprintf(stdout, "%s, %s, %s\n", counted(len(m.Shards), "shard"), counted(m.Findings, "finding"), counted(m.Changes, "change"))
	if len(m.Problems) == 0 {
		return 0
	}
	const shown = 5
	for _, p := range m.Problems[:min(len(m.Problems), shown)] {
		fmt.Fprintf(stderr, "unwire-pipeline: %s%s: %s\n", safetext.Line(p.URL), safetext.Line(p.Key), safetext.Line(p.Error))
	}
	fmt.Fprintf(stderr, "unwire-pipeline: %s: see \"problems\" in manifest.json\n", counted(len(m.Problems), "problem"))
	return 1
}

// counted returns a number with a noun, which gets an s unless the number is 1.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// help prints the flags of this program, but not those of Beam.
func help(w io.Writer) {
	fmt.Fprint(w, usage)
	only := flag.NewFlagSet("", flag.ContinueOnError)
	only.SetOutput(w)
	flag.VisitAll(func(f *flag.Flag) {
		if slices.Contains(ours, f.Name) {
			only.Var(f.Value, f.Name, f.Usage)
		}
	})
	only.PrintDefaults()
}

// fail prints an error with a hint, and returns the exit status.
func fail(w io.Writer, code int, err error, hint string) int {
	// Errors of libraries begin with the name of a package.
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "replay: "), "schema: ")
	fmt.Fprintf(w, "unwire-pipeline: error: %s\n", text)
	if hint != "" {
		fmt.Fprintf(w, "unwire-pipeline: hint: %s\n", hint)
	}
	return code
}
